//! Tables for people: columns as wide as their widest word.

/// A table with a heading, a line a row. Columns named in `right` end at their right edge.
pub(super) fn table(heading: &[&str], rows: &[Vec<String>], right: &[&str]) -> String {
    let heading_row: Vec<String> = heading.iter().map(|&name| name.to_owned()).collect();
    let all = || std::iter::once(&heading_row).chain(rows);
    let widths: Vec<usize> = (0..heading.len())
        .map(|at| all().map(|row| row[at].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in all() {
        let mut line = String::new();
        for ((word, &width), name) in row.iter().zip(&widths).zip(heading) {
            let blanks = " ".repeat(width - word.chars().count());
            if right.contains(name) {
                line += &format!("{blanks}{word}  ");
            } else {
                line += &format!("{word}{blanks}  ");
            }
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_word() {
        let row = |words: [&str; 3]| words.map(str::to_owned).to_vec();
        let text = table(
            &["id", "keys", "more"],
            &[row(["größe", "1", ""]), row(["b", "12345", "x"])],
            &["keys"],
        );
        assert_eq!(text, "id      keys  more\ngröße      1\nb      12345  x\n");
    }
}
