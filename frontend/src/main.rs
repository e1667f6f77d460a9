//! Mounts the page.

fn main() {
    frontend::mount();
}
