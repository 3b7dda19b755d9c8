//! `printf`, `print` and `println`, as Go's package `fmt` formats strings, numbers, truth values, lists and maps.
//!
//! Reference: <https://pkg.go.dev/fmt>. One difference: Go reads all numbers of user data as floating point, and prints
//! `%!d(float64=5)` for `%d`; here whole ones are accepted where an integer is expected.

use serde_json::Value;

/// The largest width, precision or index that is read; more counts as none.
const MAX_NUMBER: usize = 1_000_000;
/// The most digits of one number; Rust formats a few more.
const MOST_DIGITS: usize = 65_000;

/// The flags of one verb.
#[derive(Clone, Copy, Debug, Default)]
struct Spec {
    sharp: bool,
    zero: bool,
    plus: bool,
    minus: bool,
    space: bool,
    width: Option<usize>,
    precision: Option<usize>,
    /// `%#v`.
    is_syntax: bool,
}

/// Operands one after the other, with a blank between two that are no strings.
pub(super) fn sprint(operands: &[Value]) -> String {
    let mut out = String::new();
    for (index, operand) in operands.iter().enumerate() {
        let follows_string = index == 0 || operands[index - 1].is_string();
        if !follows_string && !operand.is_string() {
            out.push(' ');
        }
        Spec::default().print(operand, 'v', &mut out);
    }
    out
}

/// Operands with blanks between them, and an end of line.
pub(super) fn sprintln(operands: &[Value]) -> String {
    let mut out = String::new();
    for (index, operand) in operands.iter().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        Spec::default().print(operand, 'v', &mut out);
    }
    out.push('\n');
    out
}

/// `operands` in `format`. What is wrong with them is told in the text, as `%!d(string=x)`.
pub(super) fn sprintf(format: &str, operands: &[Value]) -> String {
    let mut out = String::new();
    let mut reader = Reader { rest: format, operands, next: 0, is_reordered: false, is_index_good: true };
    while let Some((before, after)) = reader.rest.split_once('%') {
        out.push_str(before);
        reader.rest = after;
        reader.verb(&mut out);
    }
    out.push_str(reader.rest);
    if !reader.is_reordered
        && let Some(extra) = operands.get(reader.next..).filter(|extra| !extra.is_empty())
    {
        let texts: Vec<_> = extra.iter().map(|operand| Spec::default().typed(operand)).collect();
        out.push_str(&format!("%!(EXTRA {})", texts.join(", ")));
    }
    out
}

/// Reads a format from verb to verb.
struct Reader<'a> {
    rest: &'a str,
    operands: &'a [Value],
    /// The index of the next operand.
    next: usize,
    /// Whether there was an index such as `%[2]s`.
    is_reordered: bool,
    is_index_good: bool,
}

impl Reader<'_> {
    /// One verb with its flags, after the `%`.
    fn verb(&mut self, out: &mut String) {
        let mut spec = Spec::default();
        self.is_index_good = true;
        while let Some(flag) = self.rest.chars().next() {
            match flag {
                '#' => spec.sharp = true,
                '0' => spec.zero = true,
                '+' => spec.plus = true,
                '-' => spec.minus = true,
                ' ' => spec.space = true,
                _ => break,
            }
            self.rest = &self.rest[1..];
        }
        let mut follows_index = self.index();
        if self.skips('*') {
            match self.operand_number() {
                Some(width) => {
                    spec.width = Some(width.unsigned_abs());
                    if width < 0 {
                        (spec.minus, spec.zero) = (true, false);
                    }
                }
                None => out.push_str("%!(BADWIDTH)"),
            }
            follows_index = false;
        } else {
            spec.width = self.number();
            self.is_index_good &= !(follows_index && spec.width.is_some());
        }
        if self.rest.len() > 1 && self.skips('.') {
            self.is_index_good &= !follows_index;
            follows_index = self.index();
            if self.skips('*') {
                spec.precision = self.operand_number().and_then(|precision| usize::try_from(precision).ok());
                if spec.precision.is_none() {
                    out.push_str("%!(BADPREC)");
                }
                follows_index = false;
            } else {
                spec.precision = Some(self.number().unwrap_or(0));
            }
        }
        if !follows_index {
            self.index();
        }
        let Some(verb) = self.rest.chars().next() else {
            out.push_str("%!(NOVERB)");
            return;
        };
        self.rest = &self.rest[verb.len_utf8()..];
        match self.operands.get(self.next) {
            _ if verb == '%' => out.push('%'),
            _ if !self.is_index_good => out.push_str(&format!("%!{verb}(BADINDEX)")),
            None => out.push_str(&format!("%!{verb}(MISSING)")),
            Some(operand) => {
                if verb == 'v' {
                    (spec.is_syntax, spec.sharp, spec.plus) = (spec.sharp, false, false);
                }
                spec.print(operand, verb, out);
                self.next += 1;
            }
        }
    }

    fn skips(&mut self, c: char) -> bool {
        let after = self.rest.strip_prefix(c);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn number(&mut self) -> Option<usize> {
        let length = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, after) = self.rest.split_at(length);
        self.rest = after;
        digits.parse().ok().filter(|number| *number <= MAX_NUMBER)
    }

    /// The value of a `*`.
    fn operand_number(&mut self) -> Option<isize> {
        let number = self.operands.get(self.next).and_then(whole);
        self.next += usize::from(self.next < self.operands.len());
        isize::try_from(number?).ok().filter(|number| number.unsigned_abs() <= MAX_NUMBER)
    }

    /// An index such as `[2]`; whether it is a good one.
    fn index(&mut self) -> bool {
        if !self.skips('[') {
            return false;
        }
        self.is_reordered = true;
        let Some((digits, after)) = self.rest.split_once(']') else {
            self.is_index_good = false;
            return false;
        };
        self.rest = after;
        let index: Option<usize> = digits.parse().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()));
        match index.and_then(|index| index.checked_sub(1)) {
            Some(index) if index < self.operands.len() => {
                self.next = index;
                true
            }
            known => {
                self.is_index_good = false;
                known.is_some()
            }
        }
    }
}

/// The value as an integer, if it is one.
pub(super) fn whole(value: &Value) -> Option<i128> {
    let Value::Number(number) = value else { return None };
    let whole_float = || number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e18);
    number.as_i64().map(i128::from).or(number.as_u64().map(i128::from)).or_else(|| whole_float().map(|f| f as i128))
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

impl Spec {
    /// `type=value`, as in complaints.
    fn typed(self, value: &Value) -> String {
        let mut out = type_of(value).to_owned();
        if !value.is_null() {
            out.push('=');
            self.print(value, 'v', &mut out);
        }
        out
    }

    fn print(self, value: &Value, verb: char, out: &mut String) {
        let printed = match (value, verb) {
            (Value::Null, 'v' | 'T') => self.padded("<nil>", out),
            (_, 'T') => self.padded(self.cut(type_of(value)), out),
            (Value::Bool(flag), 't' | 'v') => self.padded(if *flag { "true" } else { "false" }, out),
            (Value::Number(number), _) => self.number(value, number, verb, out),
            (Value::String(text), _) => self.text(text, verb, out),
            (Value::Array(items), _) if verb != 'p' => {
                out.push_str(if self.is_syntax { "[]interface {}{" } else { "[" });
                for (index, item) in items.iter().enumerate() {
                    self.glue(index, out);
                    self.nested(item, verb, out);
                }
                out.push(if self.is_syntax { '}' } else { ']' });
                return;
            }
            (Value::Object(map), _) if verb != 'p' => {
                out.push_str(if self.is_syntax { "map[string]interface {}{" } else { "map[" });
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_by_key(|(key, _)| key.as_str());
                for (index, (key, item)) in entries.into_iter().enumerate() {
                    self.glue(index, out);
                    self.print(&Value::String(key.clone()), verb, out);
                    out.push(':');
                    self.nested(item, verb, out);
                }
                out.push(if self.is_syntax { '}' } else { ']' });
                return;
            }
            (Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_), _) => None,
        };
        if printed.is_none() {
            out.push_str(&format!("%!{verb}({})", self.typed(value)));
        }
    }

    fn glue(self, index: usize, out: &mut String) {
        if index > 0 {
            out.push_str(if self.is_syntax { ", " } else { " " });
        }
    }

    fn nested(self, value: &Value, verb: char, out: &mut String) {
        match value {
            Value::Null if self.is_syntax => out.push_str("interface {}(nil)"),
            Value::Null => out.push_str("<nil>"),
            _ => self.print(value, verb, out),
        }
    }

    /// Always `Some`: the verb was a good one.
    fn padded(self, text: &str, out: &mut String) -> Option<()> {
        let missing = self.width.unwrap_or(0).saturating_sub(text.chars().count());
        let padding = if self.zero && !self.minus { "0" } else { " " }.repeat(missing);
        if self.minus {
            out.push_str(text);
            out.push_str(&padding);
        } else {
            out.push_str(&padding);
            out.push_str(text);
        }
        Some(())
    }

    /// The beginning of a text, as long as the precision.
    fn cut(self, text: &str) -> &str {
        let end = self.precision.and_then(|precision| text.char_indices().nth(precision));
        end.map_or(text, |(end, _)| &text[..end])
    }

    fn text(self, text: &str, verb: char, out: &mut String) -> Option<()> {
        match verb {
            'v' if self.is_syntax => self.padded(&quoted(self.cut(text), '"', false), out),
            'v' | 's' => self.padded(self.cut(text), out),
            'q' if self.sharp && can_be_raw(self.cut(text)) => self.padded(&format!("`{}`", self.cut(text)), out),
            'q' => self.padded(&quoted(self.cut(text), '"', self.plus), out),
            'x' | 'X' => {
                let bytes = text.as_bytes();
                let bytes = &bytes[..self.precision.unwrap_or(bytes.len()).min(bytes.len())];
                let glue = match (self.space, self.sharp) {
                    (true, true) => " 0x",
                    (true, false) => " ",
                    (false, _) => "",
                };
                let digits: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                let prefix = if self.sharp && !bytes.is_empty() { "0x" } else { "" };
                let hex = format!("{prefix}{}", digits.join(glue));
                self.padded(&if verb == 'X' { hex.to_uppercase() } else { hex }, out)
            }
            _ => None,
        }
    }

    fn number(self, value: &Value, number: &serde_json::Number, verb: char, out: &mut String) -> Option<()> {
        let float = number.as_f64().filter(|_| number.is_f64());
        match (verb, float, whole(value)) {
            ('v' | 'g' | 'G' | 'e' | 'E' | 'f' | 'F', Some(float), _) => self.float(float, verb, out),
            ('v' | 'd' | 'b' | 'o' | 'O' | 'x' | 'X', _, Some(whole)) => self.integer(whole, verb, out),
            ('c' | 'q' | 'U', _, Some(whole)) => self.character(whole, verb, out),
            _ => None,
        }
    }

    fn integer(self, whole: i128, verb: char, out: &mut String) -> Option<()> {
        let size = whole.unsigned_abs();
        if self.precision == Some(0) && size == 0 {
            return Self { zero: false, ..self }.padded("", out);
        }
        let sign = match (whole < 0, self.plus, self.space) {
            (true, _, _) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            (false, false, false) => "",
        };
        let digits = match verb {
            'b' => format!("{size:b}"),
            'o' | 'O' => format!("{size:o}"),
            'x' => format!("{size:x}"),
            'X' => format!("{size:X}"),
            _ => size.to_string(),
        };
        let least = match self.precision {
            Some(precision) => precision,
            None if self.zero && !self.minus => self.width.unwrap_or(0).saturating_sub(sign.len()),
            None => 0,
        };
        let digits = format!("{}{digits}", "0".repeat(least.saturating_sub(digits.len())));
        let prefix = match verb {
            'O' => "0o",
            'b' if self.sharp => "0b",
            'o' if self.sharp && !digits.starts_with('0') => "0",
            'x' if self.sharp => "0x",
            'X' if self.sharp => "0X",
            _ => "",
        };
        Self { zero: false, ..self }.padded(&format!("{sign}{prefix}{digits}"), out)
    }

    /// An integer as a character.
    fn character(self, whole: i128, verb: char, out: &mut String) -> Option<()> {
        let code = u32::try_from(whole).ok();
        let character = code.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
        match verb {
            'c' => self.padded(&character.to_string(), out),
            'q' => self.padded(&quoted(&character.to_string(), '\'', self.plus), out),
            _ => {
                let shown = if self.sharp { format!(" '{character}'") } else { String::new() };
                let digits = self.precision.unwrap_or(4).clamp(4, MOST_DIGITS);
                Self { zero: false, ..self }.padded(&format!("U+{:0digits$X}{shown}", whole.unsigned_abs()), out)
            }
        }
    }

    fn float(self, float: f64, verb: char, out: &mut String) -> Option<()> {
        let size = float.abs();
        let precision = self.precision.map(|precision| precision.min(MOST_DIGITS));
        let digits = match verb {
            'f' | 'F' => format!("{size:.*}", precision.unwrap_or(6)),
            'e' => exponential(&format!("{size:.*e}", precision.unwrap_or(6))),
            'E' => exponential(&format!("{size:.*e}", precision.unwrap_or(6))).to_uppercase(),
            'G' => general(size, precision).to_uppercase(),
            _ => general(size, precision),
        };
        let sign = match (float.is_sign_negative(), self.plus, self.space) {
            (true, _, _) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            (false, false, false) => "",
        };
        // Zeros come after the sign.
        if self.zero && !self.minus {
            let least = self.width.unwrap_or(0).saturating_sub(sign.len());
            let zeros = "0".repeat(least.saturating_sub(digits.len()));
            out.push_str(&format!("{sign}{zeros}{digits}"));
            return Some(());
        }
        self.padded(&format!("{sign}{digits}"), out)
    }
}

/// Rust's `1.5e1` as Go's `1.5e+01`.
fn exponential(text: &str) -> String {
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// `%g`: the shorter of `%e` and `%f`, by the exponent. Without a precision as many digits as identify the number.
fn general(size: f64, precision: Option<usize>) -> String {
    let precision = precision.map(|precision| precision.max(1));
    let text = match precision {
        Some(precision) => format!("{size:.*e}", precision - 1),
        None => format!("{size:e}"),
    };
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
    let count = digits.len() - usize::from(digits.contains('.'));
    let count = i32::try_from(count).unwrap_or(i32::MAX);
    let limit = match precision.map(|precision| i32::try_from(precision).unwrap_or(i32::MAX)) {
        None => 6,
        Some(precision) if precision > count && count > exponent => count,
        Some(precision) => precision,
    };
    if exponent < -4 || exponent >= limit {
        return exponential(&format!("{digits}e{exponent}"));
    }
    let decimals = usize::try_from(count - 1 - exponent).unwrap_or(0);
    format!("{size:.decimals$}")
}

fn can_be_raw(text: &str) -> bool {
    !text.contains(|c: char| c == '`' || c == '\u{feff}' || (c.is_control() && c != '\t'))
}

/// A quoted text with Go's escapes.
fn quoted(text: &str, quote: char, is_ascii: bool) -> String {
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            c if c == quote => out.extend(['\\', c]),
            c if is_printable(c) && (c.is_ascii() || !is_ascii) => out.push(c),
            c => out.push_str(&match c as u32 {
                code @ ..0x80 => format!("\\x{code:02x}"),
                code @ 0x80..0x10000 => format!("\\u{code:04x}"),
                code => format!("\\U{code:08x}"),
            }),
        }
    }
    out.push(quote);
    out
}

pub(super) fn is_printable(c: char) -> bool {
    matches!(c, '"' | '\'' | '\\') || c.escape_debug().len() == 1
}
