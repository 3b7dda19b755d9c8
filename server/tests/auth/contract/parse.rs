//! Parses the cases in `cases/*.case`; [`super`] describes the format.

use std::collections::BTreeMap;

/// A parsed file of cases.
#[derive(Default)]
pub struct Suite {
    pub settings: Vec<(String, String)>,
    pub routines: BTreeMap<String, Vec<Step>>,
    pub cases: Vec<Case>,
}

pub struct Case {
    pub name: String,
    pub line: usize,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub struct Step {
    pub line: usize,
    pub does: Does,
}

#[derive(Clone, Debug)]
pub enum Does {
    Ask(Box<Ask>),
    /// `mail ADDRESS -> {…}` or `-> none`
    Mail {
        to: String,
        wanted: String,
    },
    /// `outside PATH -> STATUS BODY`: sets the answer at that path from now on.
    Outside {
        path: String,
        status: String,
        body: String,
    },
    /// `asked PATH -> {…}`: the last request to an outside service at that path, or `-> none`.
    Asked {
        path: String,
        wanted: String,
    },
    /// `sql QUERY -> [{…}]`
    Sql {
        query: String,
        wanted: String,
    },
    Exec(String),
    /// `jwt TOKEN -> {"header":…,"claims":…}`
    Jwt {
        token: String,
        wanted: String,
    },
    Set {
        name: String,
        value: String,
    },
    /// `token NAME [key=value …] = CLAIMS`
    Token {
        name: String,
        options: Vec<(String, String)>,
        claims: String,
    },
    /// `do [TIMES] ROUTINE [SUFFIX]`
    Do {
        times: usize,
        routine: String,
        suffix: String,
    },
}

#[derive(Clone, Debug, Default)]
pub struct Ask {
    pub method: String,
    pub target: String,
    pub who: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<String>,
    pub status: u16,
    pub answer: String,
    pub answer_headers: Vec<(String, String)>,
}

const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

pub fn parse(file: &str, text: &str) -> Suite {
    let mut suite = Suite::default();
    let mut routine: Option<String> = None;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix("= ") {
            routine = None;
            suite.cases.push(Case { name: name.to_owned(), line: number, steps: Vec::new() });
        } else if let Some(name) = line.strip_prefix("& ") {
            suite.routines.insert(name.to_owned(), Vec::new());
            routine = Some(name.to_owned());
        } else if let Some((name, value)) = line.strip_prefix("% ").and_then(|setting| setting.split_once('=')) {
            suite.settings.push((name.to_owned(), value.to_owned()));
        } else {
            let steps = match (&routine, suite.cases.last_mut()) {
                (Some(name), _) => suite.routines.get_mut(name),
                (None, Some(case)) => Some(&mut case.steps),
                (None, None) => None,
            };
            let steps = steps.unwrap_or_else(|| panic!("{file}:{number}: no case yet"));
            read_line(steps, line, number).unwrap_or_else(|problem| panic!("{file}:{number}: {problem}: {line}"));
        }
    }
    suite
}

fn read_line(steps: &mut Vec<Step>, line: &str, number: usize) -> Result<(), &'static str> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    if METHODS.contains(&word) {
        let ask = Ask { method: word.to_owned(), target: rest.to_owned(), ..Ask::default() };
        steps.push(Step { line: number, does: Does::Ask(Box::new(ask)) });
        return Ok(());
    }
    let arrow = || rest.rsplit_once(" -> ").ok_or("no ` -> `");
    let does = match word {
        "mail" => arrow().map(|(to, wanted)| Does::Mail { to: to.to_owned(), wanted: wanted.to_owned() })?,
        "asked" => arrow().map(|(path, wanted)| Does::Asked { path: path.to_owned(), wanted: wanted.to_owned() })?,
        "sql" => arrow().map(|(query, wanted)| Does::Sql { query: query.to_owned(), wanted: wanted.to_owned() })?,
        "jwt" => arrow().map(|(token, wanted)| Does::Jwt { token: token.to_owned(), wanted: wanted.to_owned() })?,
        "outside" => {
            let (path, answer) = arrow()?;
            let (status, body) = answer.split_once(' ').unwrap_or((answer, ""));
            Does::Outside { path: path.to_owned(), status: status.to_owned(), body: body.to_owned() }
        }
        "exec" => Does::Exec(rest.to_owned()),
        "set" => {
            let (name, value) = rest.split_once(" = ").ok_or("no ` = `")?;
            Does::Set { name: name.to_owned(), value: value.to_owned() }
        }
        "token" => {
            let (head, claims) = rest.split_once(" = ").ok_or("no ` = `")?;
            let mut words = head.split(' ');
            let name = words.next().unwrap_or_default().to_owned();
            let options = words.filter_map(|word| word.split_once('='));
            let options = options.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
            Does::Token { name, options, claims: claims.to_owned() }
        }
        "do" => {
            let counted = rest.split_once(' ').and_then(|(times, rest)| Some((times.parse().ok()?, rest)));
            let (times, rest) = counted.unwrap_or((1, rest));
            let (routine, suffix) = rest.split_once(' ').unwrap_or((rest, ""));
            Does::Do { times, routine: routine.to_owned(), suffix: suffix.to_owned() }
        }
        _ => return continue_request(steps, line),
    };
    steps.push(Step { line: number, does });
    Ok(())
}

/// A further line of the current request.
fn continue_request(steps: &mut [Step], line: &str) -> Result<(), &'static str> {
    let Some(Step { does: Does::Ask(ask), .. }) = steps.last_mut() else { return Err("not part of a request") };
    if let Some(answer) = line.strip_prefix("-> ") {
        let (status, body) = answer.split_once(' ').unwrap_or((answer, ""));
        ask.status = status.parse().map_err(|_| "not a status")?;
        ask.answer = body.to_owned();
    } else if let Some(more) = line.strip_prefix(".. ") {
        ask.answer.push_str(more);
    } else if let Some(who) = line.strip_prefix('@') {
        ask.who = who.to_owned();
    } else if let Some(body) = line.strip_prefix('<') {
        ask.body.push(body.strip_prefix(' ').unwrap_or(body).to_owned());
    } else {
        let (name, value) = line.split_once(':').ok_or("not a header")?;
        let header = (name.to_owned(), value.trim_start().to_owned());
        if ask.status == 0 { ask.headers.push(header) } else { ask.answer_headers.push(header) }
    }
    Ok(())
}
