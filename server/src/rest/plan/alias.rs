//! Names that statements give to their own parts.

/// Longest identifier of PostgreSQL, in bytes; it cuts off the rest without a word.
const LONGEST: usize = 63;

/// `name`, or where PostgreSQL would cut it off and so make it equal to others: its beginning and a digest of all of
/// it. The reference does not see to that, and names that long answer 42712 there.
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
    fn short_names_stay_and_long_ones_stay_apart() {
        assert_eq!(own_name("stars_constellations_1".to_owned()), "stars_constellations_1");
        let long = "é".repeat(40);
        let (one, two) = (own_name(format!("{long}_1")), own_name(format!("{long}_2")));
        assert!(one.len() <= LONGEST && two.len() <= LONGEST && one != two, "{one} {two}");
        assert!(one.starts_with("éé"));
    }
}
