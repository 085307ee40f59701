-- Which of these (i, run_id) are to be forgotten.
SELECT w.i FROM wanted AS w SEMI JOIN forgotten USING (run_id)
