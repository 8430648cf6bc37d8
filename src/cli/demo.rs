//! demo
/// x
pub fn run(_json: bool) -> Result<i32, String> { Ok(0) }
