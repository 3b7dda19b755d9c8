//! Runs SQL files. A set names its files, the ledger that records them and the rule for a file that has changed.

use std::collections::HashMap;
use std::time::Instant;

use super::MigrateError;
use super::error::{describe, in_file};
use super::files::SqlFile;
use super::ledger::{Entry, Ledger};
use super::locks::{Attempt, Patience};
use super::session::Session;
use super::statements::Statement;

/// After how many attempts the log says what a file waits for.
const TOLD_AFTER: u32 = 5;

/// A set of files that are applied by the same rules.
pub struct Set<'a> {
    /// In the order in which they run.
    pub files: &'a [SqlFile],
    pub ledger: Ledger,
    pub when_changed: WhenChanged,
    pub unit: Unit,
}

/// What to do with an applied file whose text has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenChanged {
    /// Fail before anything runs: applied files must not change.
    Refuse,
    /// Run it again. Such files can run on any state.
    RunAgain,
    /// Leave it as it was applied.
    Keep,
    /// Record its new checksum only, as the Supabase CLI does with seeds.
    Record,
}

/// What one transaction contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// One file and its record.
    File,
    /// All files of the set. If one of them has changed, all run.
    Set,
}

/// Whether a commit waits until it is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flush {
    Now,
    /// With a later commit at the latest. If the machine fails before, the file and its record are lost together, and the next run
    /// applies it again.
    Later,
}

/// What the runner is about to do with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Run,
    /// Leave a changed file as it was applied.
    Keep,
    /// Record the new checksum of a changed file.
    Record,
}

/// Receives progress.
pub type Watch<'a> = &'a (dyn Fn(Step, &SqlFile) + Sync);

/// Ignores progress.
pub fn unwatched(_: Step, _: &SqlFile) {}

/// The steps that bring a database up to date with a set.
pub struct Plan<'a> {
    set: Set<'a>,
    steps: Vec<(Step, &'a SqlFile)>,
    unchanged: usize,
}

impl<'a> Plan<'a> {
    /// Compares the set with its ledger, whose table is created if needed.
    pub async fn of(session: &Session, set: Set<'a>) -> Result<Self, MigrateError> {
        let mut known = set.ledger.entries(session).await?;
        set.ledger.accept_equal_statements(session, set.files, &mut known).await?;
        Self::against(set, &known)
    }

    /// Compares the set with its recorded entries.
    pub fn against(set: Set<'a>, known: &HashMap<String, Entry>) -> Result<Self, MigrateError> {
        let mut steps = Vec::new();
        for file in set.files {
            match known.get(&set.ledger.key(file)) {
                None => steps.push((Step::Run, file)),
                Some(entry) if entry.checksum.is_none() || entry.checksum == Some(set.ledger.checksum(file)) => {}
                Some(entry) => match set.when_changed {
                    WhenChanged::Refuse => {
                        return Err(MigrateError::Edited {
                            file: file.file.clone(),
                            applied_at: entry.applied_at.clone(),
                        });
                    }
                    WhenChanged::RunAgain => steps.push((Step::Run, file)),
                    WhenChanged::Keep => steps.push((Step::Keep, file)),
                    WhenChanged::Record => steps.push((Step::Record, file)),
                },
            }
        }
        let unchanged = set.files.len() - steps.len();
        let mut plan = Self { set, steps, unchanged };
        let has_gone = plan.set.ledger == Ledger::Definitions && known.len() > plan.set.files.len();
        if plan.set.unit == Unit::Set && (has_gone || !plan.is_empty()) {
            plan.run_all();
        }
        Ok(plan)
    }

    /// Plans to run every file, whatever is recorded.
    pub fn run_all(&mut self) {
        self.steps = self.set.files.iter().map(|file| (Step::Run, file)).collect();
        self.unchanged = 0;
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The names of the files that would run.
    pub fn files(&self) -> Vec<String> {
        let runs = self.steps.iter().filter(|(step, _)| *step == Step::Run);
        runs.map(|(_, file)| file.file.clone()).collect()
    }

    /// Carries out the plan. The files in the result have run and are recorded.
    pub async fn carry_out(&self, session: &Session, watch: Watch<'_>) -> Result<Applied, MigrateError> {
        let mut applied = Applied { files: Vec::new(), unchanged: self.unchanged };
        if self.set.unit == Unit::Set {
            if !self.is_empty() {
                let files: Vec<&SqlFile> = self.steps.iter().map(|(_, file)| *file).collect();
                self.repeated(session, &files, Flush::Now).await?;
                applied.files = files.iter().map(|file| file.file.clone()).collect();
            }
            return Ok(applied);
        }
        let last = self.steps.iter().rposition(|(step, _)| *step == Step::Run);
        for (place, &(step, file)) in self.steps.iter().enumerate() {
            watch(step, file);
            match step {
                Step::Run => {
                    let flush = if Some(place) == last { Flush::Now } else { Flush::Later };
                    self.repeated(session, &[file], flush).await.map_err(|error| error.after(&applied.files))?;
                    applied.files.push(file.file.clone());
                }
                Step::Record => self.set.ledger.record(session, file).await?,
                Step::Keep => applied.unchanged += 1,
            }
        }
        Ok(applied)
    }

    /// Runs files and records them in one transaction. Begins again while other sessions hold locks that they need (see
    /// [`super::locks`]), unless something of them was committed.
    async fn repeated(&self, session: &Session, files: &[&SqlFile], flush: Flush) -> Result<(), MigrateError> {
        let mut patience = Patience::new(Instant::now());
        loop {
            let now = Instant::now();
            let mut attempt = if patience.attempts == 0 { Attempt::swift(now) } else { Attempt::repeatable(now) };
            match self.transaction(session, files, flush, &mut attempt).await {
                Err(error) if error.is_blocked() && !attempt.is_kept() => {
                    let Some(pause) = patience.pause(Instant::now()) else {
                        return Err(error.tried(patience.attempts, patience.elapsed()));
                    };
                    tracing::debug!(%error, attempt = patience.attempts, "other sessions hold locks");
                    if patience.attempts == TOLD_AFTER {
                        tracing::warn!(%error, "the database is not up to date yet: other sessions hold locks; trying again");
                    }
                    tokio::time::sleep(pause).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// Runs files and records them in one transaction, as the Supabase CLI does. Statements that cannot run in a transaction run
    /// alone between two. A `commit` in a file commits what came before it.
    ///
    /// If a later statement fails, what was committed stays, and the error says so.
    async fn transaction(
        &self,
        session: &Session,
        files: &[&SqlFile],
        flush: Flush,
        attempt: &mut Attempt,
    ) -> Result<(), MigrateError> {
        session.reset().await?;
        session
            .client
            .batch_execute(match flush {
                Flush::Now => "begin",
                Flush::Later => "begin; set local synchronous_commit = off",
            })
            .await?;
        if let Err(mut error) = self.fill(session, files, attempt).await {
            session.reset().await?;
            error.of_partly_kept_file(attempt.is_kept());
            return Err(error);
        }
        let Some(last) = files.last() else { return Ok(()) };
        // Deferred constraints are checked only now. The last line is the closest we get to their cause.
        let end = Statement { text: "commit", offset: last.text.chars().count(), commented: "", data: None };
        session.client.batch_execute("commit").await.map_err(|e| in_file(&last.file, &last.text, &end, &e))
    }

    async fn fill(&self, session: &Session, files: &[&SqlFile], attempt: &mut Attempt) -> Result<(), MigrateError> {
        for (place, file) in files.iter().enumerate() {
            if place > 0 {
                session.clean().await?;
            }
            if let Some(limit) = attempt.begin_file(Instant::now()) {
                session.limit_waits(limit).await?;
            }
            if self.set.ledger == Ledger::Definitions {
                // A function may call one of a later file. All are checked at the end.
                session.client.batch_execute("set check_function_bodies = off").await?;
            }
            session.statements(file, attempt).await?;
            // The file may have changed role and search path. The record names its table in full.
            session.client.batch_execute("reset session authorization; reset role").await?;
            self.set.ledger.record(session, file).await?;
        }
        match self.set.ledger {
            Ledger::Definitions => {
                self.set.ledger.forget_others(session, files).await?;
                session.clean().await?;
                check_functions(session, files).await
            }
            ledger => ledger.finish(session).await,
        }
    }
}

/// Validates the functions created by this transaction, as PostgreSQL does by default on creation.
async fn check_functions(session: &Session, files: &[&SqlFile]) -> Result<(), MigrateError> {
    let made = session
        .client
        .query(
            "select format('%I.%I(', n.nspname, p.proname), l.lanvalidator::regproc::text, p.oid
             from pg_catalog.pg_proc p
             join pg_catalog.pg_namespace n on n.oid = p.pronamespace
             join pg_catalog.pg_language l on l.oid = p.prolang
             where p.xmin = pg_catalog.pg_current_xact_id()::xid and l.lanvalidator <> 0",
            &[],
        )
        .await?;
    for row in &made {
        let (name, validator, oid): (String, String, u32) = (row.get(0), row.get(1), row.get(2));
        if let Err(error) = session.client.batch_execute(&format!("select {validator}({oid})")).await {
            return Err(in_function(&name, files, &error));
        }
    }
    Ok(())
}

/// Reports an invalid function body at the line that creates the function. `name` ends with the opening parenthesis.
fn in_function(name: &str, files: &[&SqlFile], error: &tokio_postgres::Error) -> MigrateError {
    let found = files.iter().find_map(|file| Some((file, file.text.find(&format!(" function {name}"))?)));
    let Some((file, at)) = found else { return MigrateError::Database(format!("{name}…): {}", describe(error))) };
    let line = 1 + file.text.get(..at).unwrap_or("").matches('\n').count();
    MigrateError::Sql {
        file: file.file.clone(),
        line,
        message: describe(error),
        statement: format!("function {name}…)"),
        kept: String::new(),
    }
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The files that ran, in order.
    pub files: Vec<String>,
    /// How many files were applied before.
    pub unchanged: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(texts: &[(&str, &str)]) -> Vec<SqlFile> {
        texts.iter().map(|(name, text)| SqlFile::new(name, (*text).to_owned())).collect()
    }

    /// The steps for a set in which `1_a.sql` was applied with the text `old`.
    fn steps(when_changed: WhenChanged, unit: Unit, now: &[(&str, &str)]) -> Result<Vec<(Step, String)>, MigrateError> {
        let ledger = Ledger::Definitions;
        let before = files(&[("1_a.sql", "old")]);
        let entry = |file: &SqlFile| Entry { checksum: Some(file.checksum()), applied_at: "then".to_owned() };
        let known = before.iter().map(|file| (ledger.key(file), entry(file))).collect();
        let files = files(now);
        let plan = Plan::against(Set { files: &files, ledger, when_changed, unit }, &known)?;
        Ok(plan.steps.iter().map(|(step, file)| (*step, file.file.clone())).collect())
    }

    #[test]
    fn the_rule_of_the_set_decides_what_happens_to_a_changed_file() {
        let changed = [("1_a.sql", "new"), ("2_b.sql", "b")];
        for (rule, first) in
            [(WhenChanged::RunAgain, Step::Run), (WhenChanged::Keep, Step::Keep), (WhenChanged::Record, Step::Record)]
        {
            let steps = steps(rule, Unit::File, &changed).expect("a plan");
            assert_eq!(steps, [(first, "1_a.sql".to_owned()), (Step::Run, "2_b.sql".to_owned())], "{rule:?}");
        }
        let refused = steps(WhenChanged::Refuse, Unit::File, &changed).expect_err("refused").to_string();
        assert!(refused.starts_with("1_a.sql was changed after it was applied on then"), "{refused}");
    }

    #[test]
    fn a_unit_runs_whole_when_a_file_of_it_is_new_changed_or_gone() {
        let run = |now: &[(&str, &str)]| steps(WhenChanged::RunAgain, Unit::Set, now).expect("a plan").len();
        assert_eq!(run(&[("1_a.sql", "old")]), 0);
        assert_eq!(run(&[("1_a.sql", "old"), ("2_b.sql", "b")]), 2);
        assert_eq!(run(&[("0_c.sql", "c"), ("1_a.sql", "new")]), 2);
        let before = files(&[("1_a.sql", "a"), ("2_b.sql", "b")]);
        let known = before
            .iter()
            .map(|file| (file.file.clone(), Entry { checksum: Some(file.checksum()), applied_at: String::new() }))
            .collect();
        let set = Set {
            files: &before[..1],
            ledger: Ledger::Definitions,
            when_changed: WhenChanged::RunAgain,
            unit: Unit::Set,
        };
        assert!(!Plan::against(set, &known).expect("a plan").is_empty(), "the second file has gone");
    }
}
