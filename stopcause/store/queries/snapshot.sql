-- What other tools read: verdicts, and which policies gave them. No lines, no texts of policies, no resume tokens.
CREATE TABLE fresh.verdicts AS FROM live.verdicts;
CREATE TABLE fresh.policies AS SELECT digest, id, version, first_used_at FROM live.policies;
