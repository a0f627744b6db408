-- Schedules may collect records into CSV files with a byte order mark, which Excel needs to read UTF-8.

ALTER TABLE schedules
    DROP CONSTRAINT schedules_file_check,
    ADD CONSTRAINT schedules_file_check CHECK (file IN ('ndjson', 'csv', 'csv-bom'));
