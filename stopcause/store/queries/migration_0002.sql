-- What reports group by without asking the policy again, the limits beside what was used, and each approval of a run.
-- Rows of before have none of it: the classifier's version moved with this step, so they are all judged anew.
ALTER TABLE verdicts ADD COLUMN is_latest BOOLEAN;
ALTER TABLE verdicts ADD COLUMN owner VARCHAR;
ALTER TABLE verdicts ADD COLUMN stage VARCHAR;
ALTER TABLE verdicts ADD COLUMN has_on_bound BOOLEAN;
ALTER TABLE verdicts ADD COLUMN token_limit DOUBLE;
ALTER TABLE verdicts ADD COLUMN cost_limit DOUBLE;
ALTER TABLE verdicts ADD COLUMN time_limit DOUBLE;
ALTER TABLE verdicts ADD COLUMN waits STRUCT(
    approval_id VARCHAR,
    kind VARCHAR,
    tool VARCHAR,
    owner VARCHAR,
    since TIMESTAMP,
    due TIMESTAMP,
    expires_at TIMESTAMP,
    ended_at TIMESTAMP,
    resolution VARCHAR,
    missing VARCHAR[]
)[];
-- When which days were forgotten: sums over all history begin anew there.
CREATE TABLE forgettings (before_at TIMESTAMP, done_at TIMESTAMP);
-- The current row of the latest attempt of each run. The small side, cancelled rows, is what is hashed.
CREATE VIEW runs AS
SELECT v.*
FROM verdicts AS v
ANTI JOIN (SELECT hour, run_id, attempt, revision FROM verdicts WHERE sign = -1) AS gone
    ON v.hour = gone.hour AND v.run_id = gone.run_id AND v.attempt = gone.attempt AND v.revision = gone.revision
WHERE v.sign = 1 AND v.is_latest;
