//! Converts between tool names and file names. Every tool has exactly one file name, and every file
//! name stands for one tool.

use crate::canonical::Digest;

const SUFFIX: &str = ".json";
/// Maximum length of the file name without its ending, in bytes; file systems allow 255 in total.
const STEM_BYTES_MAX: usize = 200;
const HEX_DIGITS: usize = 32;

/// Returns the file name of a tool. ASCII letters, digits, `_`, `-` and inner dots stay unchanged;
/// every other byte becomes `%` and two hex digits. A very long name ends in a part of its digest.
#[must_use]
pub fn file_name(tool: &str) -> String {
    let mut stem = String::with_capacity(tool.len());
    for (at, byte) in tool.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => stem.push(char::from(byte)),
            b'.' if at > 0 => stem.push('.'),
            _ => stem.push_str(&format!("%{byte:02x}")),
        }
    }
    if stem.len() > STEM_BYTES_MAX {
        let hex = Digest::sha256(tool.as_bytes()).to_string();
        let hex = hex.trim_start_matches("sha256:");
        let start: String = stem.chars().take(STEM_BYTES_MAX - HEX_DIGITS - 1).collect();
        stem = format!("{start}~{}", hex.get(..HEX_DIGITS).unwrap_or(hex));
    }
    stem + SUFFIX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_is_safe_and_unique() {
        let check = |tool: &str, name: &str| assert_eq!(file_name(tool), name);
        check("read_file", "read_file.json");
        check("get-user.v2", "get-user.v2.json");
        check("../../etc/passwd", "%2e.%2f..%2fetc%2fpasswd.json");
        check(".hidden", "%2ehidden.json");
        check("a b%", "a%20b%25.json");
        check("日", "%e6%97%a5.json");
    }

    #[test]
    fn long_file_name_is_shortened_uniquely() {
        let (a, b) = ("x".repeat(256), format!("{}y", "x".repeat(255)));
        assert_ne!(file_name(&a), file_name(&b));
        assert!(file_name(&a).len() <= 255 && file_name(&"ü".repeat(128)).len() <= 255);
    }
}
