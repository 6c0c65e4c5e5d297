BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0001');
CREATE TABLE attempts (
	job_key INTEGER NOT NULL, 
	number BIGINT NOT NULL, 
	started DOUBLE NOT NULL, 
	ended DOUBLE, 
	outcome TEXT NOT NULL, 
	exit_code BIGINT, 
	reason TEXT NOT NULL, 
	pid BIGINT, 
	host TEXT NOT NULL, 
	first_step BIGINT NOT NULL, 
	last_step BIGINT NOT NULL, 
	PRIMARY KEY (job_key, number), 
	FOREIGN KEY(job_key) REFERENCES jobs ("key") ON DELETE CASCADE
);
CREATE TABLE audit (
	"key" INTEGER NOT NULL, 
	time DOUBLE NOT NULL, 
	who TEXT NOT NULL, 
	action TEXT NOT NULL, 
	target TEXT NOT NULL, 
	details TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
CREATE TABLE checkpoints (
	job_key INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	step BIGINT NOT NULL, 
	epoch BIGINT NOT NULL, 
	reason TEXT NOT NULL, 
	size_bytes BIGINT NOT NULL, 
	created DOUBLE NOT NULL, 
	scalars TEXT NOT NULL, 
	PRIMARY KEY (job_key, name), 
	FOREIGN KEY(job_key) REFERENCES jobs ("key") ON DELETE CASCADE
);
CREATE TABLE curves (
	"key" INTEGER NOT NULL, 
	job_key INTEGER NOT NULL, 
	tag TEXT NOT NULL, 
	last DOUBLE, 
	minimum DOUBLE, 
	maximum DOUBLE, 
	count BIGINT NOT NULL, 
	last_step BIGINT NOT NULL, 
	PRIMARY KEY ("key"), 
	FOREIGN KEY(job_key) REFERENCES jobs ("key") ON DELETE CASCADE
);
INSERT INTO "curves" VALUES(1,1,'loss',0.25,0.25,0.5,2,2);
CREATE TABLE job_contents (
	job_key INTEGER NOT NULL, 
	spec TEXT NOT NULL, 
	needs TEXT NOT NULL, 
	depends_on TEXT NOT NULL, 
	error TEXT, 
	notes TEXT NOT NULL, 
	PRIMARY KEY (job_key), 
	FOREIGN KEY(job_key) REFERENCES jobs ("key") ON DELETE CASCADE
);
INSERT INTO "job_contents" VALUES(1,'{"learning_rate":0.1}','{"devices":1,"slot":"device"}','[]',NULL,'a note');
CREATE TABLE job_dependencies (
	job_key INTEGER NOT NULL, 
	needed_id TEXT NOT NULL, 
	PRIMARY KEY (job_key, needed_id), 
	FOREIGN KEY(job_key) REFERENCES jobs ("key") ON DELETE CASCADE
);
CREATE TABLE job_tags (
	job_key INTEGER NOT NULL, 
	tag TEXT NOT NULL, 
	PRIMARY KEY (job_key, tag), 
	FOREIGN KEY(job_key) REFERENCES jobs ("key") ON DELETE CASCADE
);
INSERT INTO "job_tags" VALUES(1,'good');
CREATE TABLE job_texts (
	job_key INTEGER NOT NULL, 
	text TEXT NOT NULL, 
	PRIMARY KEY (job_key), 
	FOREIGN KEY(job_key) REFERENCES jobs ("key") ON DELETE CASCADE
);
INSERT INTO "job_texts" VALUES(1,'old job');
CREATE TABLE jobs (
	"key" INTEGER NOT NULL, 
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	state TEXT NOT NULL, 
	folder TEXT NOT NULL, 
	project TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	"group" TEXT NOT NULL, 
	parent TEXT NOT NULL, 
	priority BIGINT NOT NULL, 
	position DOUBLE NOT NULL, 
	devices TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	paused BOOLEAN NOT NULL, 
	framework TEXT NOT NULL, 
	network TEXT NOT NULL, 
	created DOUBLE NOT NULL, 
	started DOUBLE, 
	ended DOUBLE, 
	attempt BIGINT NOT NULL, 
	epoch BIGINT NOT NULL, 
	max_epoch BIGINT NOT NULL, 
	global_step BIGINT NOT NULL, 
	total_steps BIGINT NOT NULL, 
	stage TEXT NOT NULL, 
	remaining_s DOUBLE, 
	steps_per_s DOUBLE, 
	data_wait_share DOUBLE, 
	health TEXT NOT NULL, 
	exit_code BIGINT, 
	pid BIGINT, 
	host TEXT NOT NULL, 
	events_offset BIGINT NOT NULL, 
	tags TEXT NOT NULL, 
	PRIMARY KEY ("key"), 
	UNIQUE (id)
);
INSERT INTO "jobs" VALUES(1,'20260101-000000-aaaa','train','Old job','done','/jobs/old','digits','fred','','',2,1.0,'[0]','',0,'tensorflow','lenet',5.0,6.0,9.0,1,3,3,30,30,'',NULL,NULL,NULL,'',0,NULL,'here',100,'["good"]');
CREATE TABLE messages (
	"key" INTEGER NOT NULL, 
	job_key INTEGER NOT NULL, 
	time DOUBLE NOT NULL, 
	level TEXT NOT NULL, 
	text TEXT NOT NULL, 
	step BIGINT NOT NULL, 
	PRIMARY KEY ("key"), 
	FOREIGN KEY(job_key) REFERENCES jobs ("key") ON DELETE CASCADE
);
CREATE TABLE points (
	curve_key INTEGER NOT NULL, 
	step BIGINT NOT NULL, 
	value DOUBLE, 
	epoch BIGINT NOT NULL, 
	time DOUBLE NOT NULL, 
	PRIMARY KEY (curve_key, step), 
	FOREIGN KEY(curve_key) REFERENCES curves ("key") ON DELETE CASCADE
)
 WITHOUT ROWID

;
INSERT INTO "points" VALUES(1,1,0.5,1,7.0);
INSERT INTO "points" VALUES(1,2,0.25,1,8.0);
CREATE TABLE projects (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	created DOUBLE NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
CREATE TABLE sessions (
	digest TEXT NOT NULL, 
	user_id INTEGER NOT NULL, 
	created DOUBLE NOT NULL, 
	expires DOUBLE NOT NULL, 
	last_used DOUBLE NOT NULL, 
	PRIMARY KEY (digest), 
	FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE TABLE settings (
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (name)
);
CREATE TABLE spec_values (
	name TEXT NOT NULL, 
	job_key INTEGER NOT NULL, 
	number DOUBLE, 
	text TEXT, 
	PRIMARY KEY (name, job_key), 
	FOREIGN KEY(job_key) REFERENCES jobs ("key") ON DELETE CASCADE
)
 WITHOUT ROWID

;
INSERT INTO "spec_values" VALUES('learning_rate',1,0.1,NULL);
CREATE TABLE tokens (
	id INTEGER NOT NULL, 
	digest TEXT NOT NULL, 
	user_id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	scope TEXT NOT NULL, 
	created DOUBLE NOT NULL, 
	expires DOUBLE, 
	last_used DOUBLE, 
	revoked BOOLEAN NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (digest), 
	FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE TABLE users (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	role TEXT NOT NULL, 
	password_hash TEXT NOT NULL, 
	disabled BOOLEAN NOT NULL, 
	created DOUBLE NOT NULL, 
	last_seen DOUBLE, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "users" VALUES(1,'fred','admin','hash',0,1.0,NULL);
CREATE INDEX jobs_by_state ON jobs (state, priority, position);
CREATE INDEX jobs_by_created ON jobs (created, id);
CREATE INDEX jobs_by_position ON jobs (position);
CREATE INDEX jobs_by_project ON jobs (project);
CREATE INDEX jobs_by_group ON jobs ("group");
CREATE INDEX job_tags_by_tag ON job_tags (tag, job_key);
CREATE INDEX job_dependencies_by_needed ON job_dependencies (needed_id);
CREATE INDEX spec_values_by_job ON spec_values (job_key);
CREATE INDEX curves_by_job ON curves (job_key);
CREATE INDEX curves_by_tag ON curves (tag, job_key, last);
CREATE INDEX messages_by_job ON messages (job_key, "key");
CREATE INDEX sessions_by_user ON sessions (user_id);
CREATE INDEX sessions_by_expiry ON sessions (expires);
CREATE INDEX tokens_by_user ON tokens (user_id);
CREATE INDEX audit_by_time ON audit (time);
CREATE INDEX audit_by_target ON audit (target, time);
COMMIT;
