-- The newest revision of each attempt of the runs of `wanted`; its -1 row where the attempt is no longer judged.
SELECT verdicts.*
FROM verdicts SEMI JOIN wanted USING (run_id)
QUALIFY row_number() OVER (PARTITION BY run_id, attempt ORDER BY revision DESC, sign) = 1
