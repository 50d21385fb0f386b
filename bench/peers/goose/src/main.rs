// The bench's load for goose: one GET a transaction, then the wait.
use goose::prelude::*;
use std::time::Duration;

async fn get(user: &mut GooseUser) -> TransactionResult {
    let path = std::env::var("BENCH_PATH").unwrap_or_else(|_| "/".into());
    let _ = user.get(&path).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), GooseError> {
    let wait_s = std::env::var("BENCH_WAIT_S")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0.0);
    let mut scenario = scenario!("get").register_transaction(transaction!(get));
    if wait_s > 0.0 {
        let wait = Duration::from_secs_f64(wait_s);
        scenario = scenario.set_wait_time(wait, wait)?;
    }
    GooseAttack::initialize()?
        .register_scenario(scenario)
        .execute()
        .await?;
    Ok(())
}
