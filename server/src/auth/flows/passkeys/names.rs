//! Default names of new passkeys.

use uuid::Uuid;

/// Common authenticators by AAGUID; all others are named "Passkey". Source:
/// passkeydeveloper/passkey-authenticator-aaguids.
const KNOWN: [(u128, &str); 12] = [
    (0xea9b8d66_4d01_1d21_3ce4_b6b48cb575d4, "Google Password Manager"),
    (0xfbfc3007_154e_4ecc_8c0b_6e020557d7bd, "Apple Passwords"),
    (0xdd4ec289_e01d_41c9_bb89_70fa845d4bf2, "iCloud Keychain (Managed)"),
    (0x08987058_cadc_4b81_b6e1_30de50dcbe96, "Windows Hello"),
    (0x9ddd1817_af5a_4672_a2b9_3e3dd95000a9, "Windows Hello"),
    (0x6028b017_b1d4_4c02_b4b3_afcdafc96bb2, "Windows Hello"),
    (0xbada5566_a7aa_401f_bd96_45619a55120d, "1Password"),
    (0xd548826e_79b4_db40_a3d8_11116f7e8349, "Bitwarden"),
    (0x531126d6_e717_415c_9320_3d9aa6981239, "Dashlane"),
    (0x53414d53_554e_4700_0000_000000000000, "Samsung Pass"),
    (0xadce0002_35bc_c60a_648b_0b25f1f05503, "Chrome on Mac"),
    (0xfdb141b2_5d84_443e_8a35_4698c205a502, "KeePassXC"),
];

pub fn of(aaguid: Option<Uuid>) -> &'static str {
    let known = |id: Uuid| KNOWN.iter().find(|(known, _)| *known == id.as_u128()).map(|(_, name)| *name);
    aaguid.and_then(known).unwrap_or("Passkey")
}
