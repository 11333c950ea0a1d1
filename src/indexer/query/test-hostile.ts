import { KEYWORD_ESCAPES } from '../clickhouse/policy/test-keyword-escapes.ts'

/**
 * Statements that must not reach ClickHouse: each reads another database, a file, a connection or a setting, or does more than read. `port` is a
 * loopback port that must never get a connection.
 */
export function clickHouseEscapes(port: number): readonly string[] {
  const at = `127.0.0.1:${port}`
  const sources = [
    `url('http://${at}/', CSV, 'x String')`,
    `URL('http://${at}/', CSV, 'x String')`,
    `\`url\`('http://${at}/', CSV, 'x String')`,
    `"url"('http://${at}/', CSV, 'x String')`,
    `url/**/('http://${at}/', CSV, 'x String')`,
    `urlCluster('c', 'http://${at}/', CSV, 'x String')`,
    `remote('${at}', system.one)`,
    `remote('${at}', system, one)`,
    `remoteSecure('${at}', system.one)`,
    `cluster('default', system.one)`,
    `clusterAllReplicas('default', system.one)`,
    `mysql('${at}', 'd', 't', 'u', 'p')`,
    `postgresql('${at}', 'd', 't', 'u', 'p')`,
    `mongodb('${at}', 'd', 't', 'u', 'p', 'x String')`,
    `redis('${at}', 'key', 'key String')`,
    `jdbc('jdbc:mysql://${at}/', 'd', 't')`,
    `odbc('DSN=x;Server=${at}', 'd', 't')`,
    `s3('http://${at}/b/k', 'CSV', 'x String')`,
    `gcs('http://${at}/b/k', 'CSV', 'x String')`,
    `hdfs('hdfs://${at}/k', 'CSV', 'x String')`,
    `iceberg('http://${at}/b/k')`,
    `deltaLake('http://${at}/b/k')`,
    `azureBlobStorage('http://${at}/', 'c', 'b', 'CSV')`,
    `file('/etc/passwd', 'CSV', 'x String')`,
    `executable('id', 'CSV', 'x String')`,
    `input('x String')`,
    `merge('system', 'one')`,
    `merge(currentDatabase(), '.*')`,
    `dictionary('d')`,
    `loop(system, one)`,
    `view(SELECT * FROM system.one)`,
    `viewExplain('EXPLAIN', '', (SELECT 1))`,
    `generateRandom('x UInt8')`,
    `zeros(10)`,
    `system.processes`,
    `SYSTEM.processes`,
    `\`system\`.\`processes\``,
    `"system"."processes"`,
    `system . processes`,
    `system/**/./**/processes`,
    `system.query_log`,
    `system.users`,
    `information_schema.triggers`,
    `INFORMATION_SCHEMA.TRIGGERS`,
    `chain_base.blocks`,
    `default.blocks`,
    `_temporary_and_external_tables.x`,
    `chain.system.processes`,
    `chain.nosuch`,
    `'/etc/passwd'`,
    `{t:Identifier}`,
    `(EXPLAIN SELECT 1)`,
    `(DESCRIBE TABLE system.processes)`,
    `(system.processes)`,
    `(SHOW TABLES)`,
  ]
  const functions = [
    `dictGet('d', 'a', 1)`,
    `dictGetString('d', 'a', toUInt64(1))`,
    `dictHas('d', 1)`,
    `joinGet('system.one', 'dummy', 1)`,
    `hasColumnInTable('${at}', 'u', 'p', 'd', 't', 'c')`,
    `file('/etc/passwd')`,
    `sleep(3)`,
    `sleepEachRow(3)`,
    `fqdn()`,
    `getSetting('max_memory_usage')`,
    `getMacro('shard')`,
    `serverUUID()`,
    `tcpPort()`,
    `throwIf(1)`,
    `addressToLine(1)`,
    `filesystemAvailable()`,
    `initializeAggregation('count', 1)`,
    `evalMLMethod(1)`,
    `modelEvaluate('m', 1)`,
    `catboostEvaluate('/m', 1)`,
    `regionToName(1)`,
    `repeat('x', 1000000000)`,
    `in(1, system.processes)`,
    `NOT in(1, system.processes)`,
    `1 IN system.processes`,
    `1 IN (system.processes)`,
    `1 IN ((system.processes))`,
    `1 GLOBAL NOT IN \`system\`.processes`,
    `globalIn(1, system.processes)`,
    `TOP 1 in(1, system.processes)`,
    `DISTINCT ON (a) in(1, (system.processes))`,
    `* APPLY(hostName) FROM blocks`,
    `(SELECT name FROM system.processes LIMIT 1)`,
    `exists(SELECT 1 FROM system.processes)`,
  ]
  return [
    ...sources.map((source) => `SELECT * FROM ${source}`),
    ...sources
      .slice(0, 12)
      .flatMap((source) => [
        `SELECT * FROM blocks, ${source}`,
        `SELECT * FROM blocks AS system, ${source}`,
        `SELECT 1 FROM blocks ANY LEFT JOIN ${source} USING slot`,
        `SELECT 1 WHERE 1 IN (SELECT * FROM ${source})`,
        `WITH x AS (SELECT * FROM ${source}) SELECT * FROM x`,
        `SELECT 1 UNION ALL SELECT 1 FROM ${source}`,
        `DESCRIBE ${source}`,
        `EXPLAIN SELECT * FROM ${source}`,
        `INSERT INTO FUNCTION ${source} SELECT 1`,
      ]),
    ...functions.map((call) => `SELECT ${call}`),
    ...KEYWORD_ESCAPES,
    'SELECT * FROM blocks AS system, system.processes',
    'SELECT * FROM blocks AS where, system.processes',
    'SELECT * FROM blocks where , system.processes',
    'SELECT * FROM blocks AS b QUALIFY, system.processes',
    'SELECT * FROM blocks AS array JOIN system.processes ON 1',
    'WITH system AS (SELECT 1) SELECT * FROM system.processes',
    'WITH processes AS (SELECT 1) SELECT * FROM system.processes',
    'FROM system.processes SELECT *',
    'SELECT 1\u2003FROM\u2003system.processes',
    'SELECT 1 ſELECT 2',
    'SELECT $$x$$',
    'SELECT @@version',
    "SELECT 1 INTO OUTFILE '/tmp/x'",
    "SELECT 1 INTO OUTFILE '/tmp/x' FORMAT CSV",
    'SELECT * FROM (SELECT 1 SETTINGS readonly = 0)',
    'SELECT * FROM (SELECT 1 FORMAT JSON)',
    'SELECT 1 FORMAT JSON SETTINGS x',
    'SELECT 1; SELECT 2',
    'SELECT 1; DROP TABLE blocks',
    ...`KILL QUERY WHERE 1;KILL QUERY WHERE 1 SYNC;KILL MUTATION WHERE 1;SYSTEM SHUTDOWN;SYSTEM FLUSH LOGS;SYSTEM RELOAD CONFIG;SET readonly = 0;
      USE system;SHOW PROCESSLIST;SHOW GRANTS;SHOW USERS;SHOW CLUSTERS;SHOW DICTIONARIES;DROP TABLE blocks;TRUNCATE TABLE blocks;
      ALTER TABLE blocks DELETE WHERE 1;CREATE TABLE t (x UInt8) ENGINE = Memory;CREATE TEMPORARY TABLE t (x UInt8);CREATE DATABASE d;
      INSERT INTO blocks VALUES (1);OPTIMIZE TABLE blocks;RENAME TABLE blocks TO b;DETACH TABLE blocks;ATTACH TABLE t;CHECK TABLE blocks;GRANT ALL ON *.* TO u;
      CREATE USER u;EXPLAIN SELECT 1;EXPLAIN AST SELECT 1;BACKUP TABLE blocks TO Disk('x', 'y');WATCH v;EXCHANGE TABLES a AND b;
      EXECUTE AS root SELECT 1;BEGIN TRANSACTION;UPDATE blocks SET slot = 1 WHERE 1;DELETE FROM blocks WHERE 1;/* SELECT */ DROP TABLE blocks;(DROP TABLE blocks)`
      .split(';')
      .map((statement) => statement.trim()),
  ]
}

/** Statements that the gateway itself responds to, because the server's own values are not the customer's to see. */
export const SERVED_BY_GATEWAY: Readonly<Record<string, RegExp>> = {
  'SELECT hostName()': /^test\n$/,
  'SELECT version()': /^25\.8\.1\.1\n$/,
  'SELECT uptime()': /^\d{1,4}\n$/,
  'SELECT currentUser()': /^u_\w+\n$/,
  'SELECT user()': /^u_\w+\n$/,
  'SELECT currentDatabase()': /^solana\n$/,
  'SELECT timezone()': /^UTC\n$/,
  "SHOW SETTINGS LIKE 'max_memory%'": /^$/,
  "SHOW SETTINGS LIKE 'max_result_rows'": /^max_result_rows\tUInt64\t0\n$/,
  'SHOW DATABASES': /^INFORMATION_SCHEMA\ninformation_schema\nsolana\nsystem\n$/,
  'SHOW TABLES FROM solana LIMIT 1': /^account_activity\n$/,
  'SET max_threads = 1': /^$/,
  'USE solana': /^$/,
}

/** For tests that only apply the policy. */
export const CLICKHOUSE_ESCAPES: readonly string[] = clickHouseEscapes(9)

/** Pieces of statements, to be combined in any order. */
export function hostilePieces(port: number): readonly string[] {
  return [
    ...`SELECT FROM WHERE WITH AS INSERT INTO SET DROP TABLE UNION ALL ORDER BY GROUP LIMIT JOIN ARRAY ANY LEFT ON USING GLOBAL IN NOT FINAL SAMPLE PREWHERE
      HAVING DISTINCT SETTINGS FORMAT KILL QUERY SYSTEM SHOW DESCRIBE EXPLAIN OUTFILE APPLY TOP OVER WINDOW QUALIFY CASE WHEN THEN ELSE END
      transactions blocks coverage chain.blocks chain_base.blocks system.tables system.processes system.one system . numbers default.x
      hostName() version() currentUser() count() max(slot) arrayJoin([1,2]) numbers(3) sleep(1) dictGet('a','b',1) getSetting('x')
      slot fee leader 1 'x' 'it''s' '\\\\' "blocks" \`system\`.\`tables\` * , ( ) ; . = -- /* */ # $$ @ [ ] {p:UInt64} {p:Identifier} ? -> :: || readonly=0 \\ '`
      .trim()
      .split(/\s+/),
    `url('http://127.0.0.1:${port}/', CSV, 'x String')`,
    `remote('127.0.0.1:${port}', system.one)`,
    `mysql('127.0.0.1:${port}', 'd', 't', 'u', 'p')`,
    `file('/etc/passwd', 'CSV', 'x String')`,
    `'http://127.0.0.1:${port}/'`,
    'url',
    'remote',
    'system',
    'tables',
    '\u00a0',
    '\u2003',
  ]
}
