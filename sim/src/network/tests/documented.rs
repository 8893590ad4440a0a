//! Compares the table of docs/simulated-network.md with the tests and with the headings of `outcomes.txt`.

const PAGE: &str = include_str!("../../../../docs/simulated-network.md");
const OUTCOMES: &str = include_str!("outcomes.txt");
const TESTS: [&str; 3] = [
    include_str!("families.rs"),
    include_str!("../../names/tests.rs"),
    include_str!("../../pods/tests/mod.rs"),
];

#[test]
fn each_documented_limitation_has_a_row_and_a_test_or_a_reason() {
    let rows: Vec<Vec<&str>> = PAGE
        .lines()
        .filter(|line| line.starts_with("| N"))
        .map(|line| line.split(" | ").collect())
        .collect();
    let numbers: Vec<String> = (1..=24).map(|number| format!("| N{number:02}")).collect();
    let seen: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(seen, numbers);
    for row in rows {
        let tests: Vec<&str> = row[3].split('`').skip(1).step_by(2).collect();
        assert_eq!(tests.is_empty(), row[2].starts_with("not:"), "{row:?}");
        for test in tests {
            let named = format!("fn {test}()");
            let is_listed = OUTCOMES.lines().any(|line| line == test);
            assert!(
                is_listed || TESTS.iter().any(|all| all.contains(&named)),
                "{test}"
            );
        }
    }
}
