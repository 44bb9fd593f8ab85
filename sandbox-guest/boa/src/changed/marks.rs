//! Text that stands in the place of another, so that the other can be had back.

/// Text in the place of another, so that it can be taken back.
pub(super) fn marked(name: &str, text: &str, before: &str) -> String {
    format!("/*{name}*/{text}/*{name} {before}*/")
}

/// Text as it was before such changes.
pub(super) fn restored(text: &str, name: &str) -> Option<String> {
    let (begins, ends) = (format!("/*{name}*/"), format!("/*{name} "));
    let mut pieces = text.split(begins.as_str());
    let mut whole = pieces.next()?.to_owned();
    for piece in pieces {
        let (_, rest) = piece.split_once(ends.as_str())?;
        let (before, after) = rest.split_once("*/")?;
        whole.push_str(before);
        whole.push_str(after);
    }
    Some(whole)
}
