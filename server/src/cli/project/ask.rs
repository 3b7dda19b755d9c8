//! A question to whoever sits at the terminal, before something is lost.

use super::say;

/// What the person at the terminal says; nobody says no.
pub fn answers_yes() -> anyhow::Result<bool> {
    use std::io::IsTerminal;
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    say("[y/N]");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
