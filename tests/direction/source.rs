//! Rust sources as far as their paths go: tokens, without test code, and the paths in them.

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Token {
    Name(String),
    Colons,
    Other(char),
}

/// A source as names, `::` and single characters, each with its line; without comments, strings,
/// characters and lifetimes.
pub(crate) fn tokens(source: &str) -> Vec<(usize, Token)> {
    let mut found = Vec::new();
    let (mut rest, mut line) = (source, 1);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => quoted(rest),
            '\'' => character(rest),
            _ if raw_string(rest).is_some() => raw_string(rest).expect("was asked above"),
            ':' if rest.starts_with("::") => {
                found.push((line, Token::Colons));
                2
            }
            _ if first == '_' || first.is_alphanumeric() => {
                let end = rest.find(|c: char| c != '_' && !c.is_alphanumeric());
                let name = &rest[..end.unwrap_or(rest.len())];
                found.push((line, Token::Name(name.to_owned())));
                name.len()
            }
            _ => {
                if !first.is_whitespace() {
                    found.push((line, Token::Other(first)));
                }
                first.len_utf8()
            }
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    found
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        let opens = text[at..].starts_with("/*");
        let closes = text[at..].starts_with("*/");
        depth = depth + usize::from(opens) - usize::from(closes);
        at += if opens || closes {
            2
        } else {
            text[at..].chars().next().map_or(1, char::len_utf8)
        };
        if depth == 0 {
            break;
        }
    }
    at
}

fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            _ => escaped = c == '\\' && !escaped,
        }
    }
    text.len()
}

/// `r"…"`, `br#"…"#` and so on.
fn raw_string(text: &str) -> Option<usize> {
    let from_r = text.strip_prefix('b').unwrap_or(text).strip_prefix('r')?;
    let hashes = from_r.len() - from_r.trim_start_matches('#').len();
    let body = from_r[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = body.find(&end).map_or(body.len(), |at| at + end.len());
    Some(text.len() - body.len() + length)
}

/// A character literal, or the quote of a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, c))) => {
            let after = at + c.len_utf8();
            text[after..]
                .find('\'')
                .map_or(text.len(), |end| after + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

/// Without the items under `#[cfg(test)]`; and how many lines there are without those.
pub(crate) fn without_tests(all: &[(usize, Token)], lines: usize) -> (Vec<(usize, Token)>, usize) {
    let attribute = tokens("#[cfg(test)]");
    let starts = |at: usize| {
        let there = all[at..].iter().map(|(_, token)| token);
        all.len() - at > attribute.len()
            && attribute
                .iter()
                .map(|(_, token)| token)
                .eq(there.take(attribute.len()))
    };
    let (mut kept, mut tests, mut at) = (Vec::new(), 0, 0);
    while at < all.len() {
        if !starts(at) {
            kept.push(all[at].clone());
            at += 1;
            continue;
        }
        let first = all[at].0;
        at = end_of_item(all, at + attribute.len());
        tests += all[at - 1].0 - first + 1;
    }
    (kept, lines - tests)
}

/// Behind the item's `;` or its closing brace.
fn end_of_item(all: &[(usize, Token)], from: usize) -> usize {
    let mut depth = 0_usize;
    for (at, (_, token)) in all.iter().enumerate().skip(from) {
        match token {
            Token::Other('{') => depth += 1,
            Token::Other('}') if depth == 1 => return at + 1,
            Token::Other('}') => depth -= 1,
            Token::Other(';') if depth == 0 => return at + 1,
            _ => {}
        }
    }
    all.len()
}

/// Every path of two names or more, its groups opened: `a::{b, c::d}` is `a::b` and `a::c::d`.
pub(crate) fn paths(tokens: &[(usize, Token)]) -> Vec<(usize, Vec<String>)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        match (&tokens[at].1, tokens.get(at + 1)) {
            (Token::Name(_), Some((_, Token::Colons))) => {
                at = path(tokens, at, &mut Vec::new(), &mut found);
            }
            _ => at += 1,
        }
    }
    found
}

fn path(
    tokens: &[(usize, Token)],
    mut at: usize,
    before: &mut Vec<String>,
    found: &mut Vec<(usize, Vec<String>)>,
) -> usize {
    let length = before.len();
    let line = tokens.get(at).map_or(0, |(line, _)| *line);
    while let Some((_, Token::Name(name))) = tokens.get(at) {
        before.push(name.clone());
        at += 1;
        if !matches!(tokens.get(at), Some((_, Token::Colons))) {
            break;
        }
        at += 1;
    }
    if matches!(tokens.get(at), Some((_, Token::Other('{'))))
        && matches!(tokens[at - 1].1, Token::Colons)
    {
        at += 1;
        while !matches!(tokens.get(at), None | Some((_, Token::Other('}')))) {
            at = match tokens[at].1 {
                Token::Name(_) => path(tokens, at, before, found),
                _ => at + 1,
            };
        }
        at += 1;
    } else {
        found.push((line, before.clone()));
    }
    before.truncate(length);
    at
}
