-- What a replay carries over: the results that its origin recorded at places before this one. It lies before the step
-- that the replay begins at where a changed input, or another definition, changes an earlier step.
ALTER TABLE run ADD COLUMN carry_before_top INTEGER;
