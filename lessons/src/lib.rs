//! Lessons: prose, scripts, and the runner that plays them.
