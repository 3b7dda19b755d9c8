//! Names for the parts of a statement.

/// The longest identifier in PostgreSQL, in bytes. It truncates longer ones silently.
const LONGEST: usize = 63;

/// `name`, or if PostgreSQL would truncate it, its beginning and a digest, so that names stay distinct. The
/// reference does not do this and answers 42712 for such names.
pub fn own_name(name: String) -> String {
    if name.len() <= LONGEST {
        return name;
    }
    // FNV-1a, 64 bits.
    let digest = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let end = (0..=LONGEST - 17).rev().find(|end| name.is_char_boundary(*end)).unwrap_or_default();
    format!("{}_{digest:016x}", &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_aliases_are_kept_and_long_ones_stay_distinct() {
        assert_eq!(own_name("stars_constellations_1".to_owned()), "stars_constellations_1");
        let long = "é".repeat(40);
        let (one, two) = (own_name(format!("{long}_1")), own_name(format!("{long}_2")));
        assert!(one.len() <= LONGEST && two.len() <= LONGEST && one != two, "{one} {two}");
        assert!(one.starts_with("éé"));
    }
}
