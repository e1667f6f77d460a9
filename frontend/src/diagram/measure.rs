//! How wide a text will be, near enough to keep labels apart.
//!
//! Inter at weight 500 to 650; a few percent too wide rather than too narrow, since a
//! gap is better than a collision.

/// Width in pixels of a text in the sans face at this size.
pub fn sans(text: &str, size: f64) -> f64 {
    text.chars().map(em).sum::<f64>() * size
}

/// Width in pixels of a text in the mono face at this size.
pub fn mono(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * 0.602 * size
}

fn em(letter: char) -> f64 {
    match letter {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '’' | '|' | '!' | ' ' => 0.285,
        'f' | 't' | 'r' | '(' | ')' | '-' | '/' | 'I' => 0.38,
        'm' | 'w' | 'M' | 'W' | '@' => 0.87,
        'A'..='Z' | '<' | '>' | '=' | '≥' | '≤' | '✓' | '✕' => 0.69,
        '0'..='9' => 0.63,
        '·' => 0.3,
        _ => 0.575,
    }
}

/// The text, cut with an ellipsis to what fits into this width in the sans face.
pub fn fit(text: &str, size: f64, width: f64) -> String {
    if sans(text, size) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = sans("…", size);
    for letter in text.chars() {
        used += em(letter) * size;
        if used > width {
            break;
        }
        kept.push(letter);
    }
    kept.truncate(kept.trim_end().len());
    kept.push('…');
    kept
}
