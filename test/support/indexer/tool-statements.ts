/**
 * Statements that tools send to a ClickHouse server when they connect, list tables and draw a chart, over HTTP. Each names the public source that it
 * comes from; names of databases, tables and columns are those of our tables, and what a tool fills in is filled in.
 */
export type ToolStatement = {
  readonly tool: 'grafana' | 'superset' | 'metabase' | 'jdbc' | 'python'
  readonly when: 'connect' | 'browse' | 'chart'
  /** Repository and path. */
  readonly source: string
  readonly sql: string
  /** Fields of the URL. */
  readonly fields?: Readonly<Record<string, string>>
  /** A regular expression for the result as TabSeparated; without it a result with at least one row is expected. */
  readonly expected?: RegExp
}

const GRAFANA = 'grafana/clickhouse-datasource src/data/CHDatasource.ts'
const GRAFANA_CHART = 'grafana/clickhouse-datasource src/data/sqlGenerator.ts and pkg/macros/macros.go'
const CONNECT = 'ClickHouse/clickhouse-connect clickhouse_connect/driver/client.py'
const ALCHEMY = 'ClickHouse/clickhouse-connect clickhouse_connect/cc_sqlalchemy/dialect.py'
const INSPECTOR = 'ClickHouse/clickhouse-connect clickhouse_connect/cc_sqlalchemy/inspector.py'
const SUPERSET = 'apache/superset superset/db_engine_specs/clickhouse.py'
const METABASE = 'ClickHouse/metabase-clickhouse-driver src/metabase/driver/clickhouse.clj'
const METABASE_VERSION = 'ClickHouse/metabase-clickhouse-driver src/metabase/driver/clickhouse_version.clj'
const JAVA = 'ClickHouse/clickhouse-java client-v2/src/main/java/com/clickhouse/client/api/Client.java'
const JDBC = 'ClickHouse/clickhouse-java jdbc-v2/src/main/java/com/clickhouse/jdbc/metadata/DatabaseMetaData.java'

/** Fields that clickhouse-connect sends with every query (clickhouse_connect/driver/httpclient.py). */
const PYTHON_FIELDS = {
  session_id: '0e2f5a53-7f7c-4f7b-8f3d-2f1d0d1b9a10',
  date_time_input_format: 'best_effort',
  send_progress_in_http_headers: '1',
  http_headers_progress_interval_ms: '120000',
  wait_end_of_query: '1',
  enable_http_compression: '1',
  client_protocol_version: '54405',
}

export const TOOL_STATEMENTS: readonly ToolStatement[] = [
  { tool: 'grafana', when: 'connect', source: GRAFANA, sql: 'SELECT version()', expected: /^25\.\d+\.\d+\.\d+\n$/ },
  {
    tool: 'grafana',
    when: 'connect',
    source:
      'jaegertracing/jaeger package clickhousetest, a server double with the handshake of clickhouse-go, which the plugin uses',
    sql: 'SELECT displayName(), version(), revision(), timezone()',
    expected: /^test\t25[.\d]+\t\d+\tUTC\n$/,
  },
  {
    tool: 'grafana',
    when: 'connect',
    source: 'ClickHouse/clickhouse-go conn_http.go, which the plugin uses',
    sql: 'SELECT timeZone()',
    expected: /^UTC\n$/,
  },
  {
    tool: 'grafana',
    when: 'connect',
    source: 'ClickHouse/clickhouse-go conn_http.go, ping, which looks for the column 1',
    sql: 'SELECT 1 FORMAT TSVWithNames',
    expected: /^1\n1\n$/,
  },
  { tool: 'grafana', when: 'browse', source: GRAFANA, sql: 'SHOW DATABASES', expected: /^solana$/m },
  { tool: 'grafana', when: 'browse', source: GRAFANA, sql: 'SHOW TABLES FROM "solana"', expected: /^blocks$/m },
  { tool: 'grafana', when: 'browse', source: GRAFANA, sql: 'SHOW TABLES', expected: /^blocks$/m },
  {
    tool: 'grafana',
    when: 'browse',
    source: GRAFANA,
    sql: 'DESC TABLE "solana"."blocks"',
    expected: /^slot\tUInt64\t/,
  },
  {
    tool: 'grafana',
    when: 'browse',
    source: GRAFANA,
    sql: 'SELECT name, type, table FROM system.columns',
    expected: /^leader\tLowCardinality\(String\)\tblocks$/m,
  },
  {
    tool: 'grafana',
    when: 'browse',
    source: GRAFANA,
    sql: "SELECT name, type, table FROM system.columns WHERE database IN ('solana') AND table = 'blocks'",
    expected: /^slot\tUInt64\tblocks$/m,
  },
  {
    tool: 'grafana',
    when: 'browse',
    source: GRAFANA,
    sql: `
      SELECT
        name, is_aggregate, case_insensitive, alias_to, origin, description,
        syntax, arguments, returned_value, examples, categories
      FROM system.functions
      LIMIT 10000
    `,
    expected: /^uniqExact\t1\t/m,
  },
  { tool: 'grafana', when: 'browse', source: GRAFANA, sql: 'select distinct leader from solana.blocks limit 1000' },
  {
    tool: 'grafana',
    when: 'chart',
    source: GRAFANA_CHART,
    sql: 'SELECT block_time as "time", count(*) as total FROM "solana"."transactions" WHERE ( time >= toDateTime(0) AND time <= toDateTime(4000000000) ) GROUP BY time ORDER BY time ASC LIMIT 1000',
  },
  {
    tool: 'grafana',
    when: 'chart',
    source: 'grafana/clickhouse-datasource src/data/sqlGenerator.test.ts, aggregate time series',
    sql: 'SELECT block_time as "time", tx_count, sum(tx_count) as total FROM "solana"."blocks" WHERE ( tx_count >= 0 ) GROUP BY time, tx_count ORDER BY time ASC LIMIT 100',
  },
  {
    tool: 'grafana',
    when: 'chart',
    source: GRAFANA_CHART,
    sql: 'SELECT toStartOfInterval(toDateTime(block_time), INTERVAL 60 second) as time, avg(fee) FROM solana.transactions GROUP BY time ORDER BY time ASC',
  },
  {
    tool: 'python',
    when: 'connect',
    source: CONNECT,
    sql: 'SELECT version(), timezone()',
    fields: { session_id: PYTHON_FIELDS.session_id },
    expected: /^25[.\d]+\tUTC\n$/,
  },
  {
    tool: 'python',
    when: 'connect',
    source: CONNECT,
    sql: 'SELECT name, value, readonly as readonly FROM system.settings LIMIT 10000',
    fields: PYTHON_FIELDS,
    expected: /^enable_http_compression\t0\t0$/m,
  },
  { tool: 'superset', when: 'browse', source: ALCHEMY, sql: 'SHOW DATABASES', fields: PYTHON_FIELDS },
  {
    tool: 'superset',
    when: 'browse',
    source: ALCHEMY,
    sql: "SELECT name FROM system.databases WHERE name = 'solana'",
    expected: /^solana\n$/,
  },
  { tool: 'superset', when: 'browse', source: ALCHEMY, sql: 'SHOW TABLES FROM solana' },
  { tool: 'superset', when: 'browse', source: ALCHEMY, sql: 'EXISTS TABLE `solana`.`blocks`', expected: /^1\n$/ },
  { tool: 'superset', when: 'browse', source: INSPECTOR, sql: 'SELECT currentDatabase()', expected: /^solana\n$/ },
  {
    tool: 'superset',
    when: 'browse',
    source: INSPECTOR,
    sql: "SELECT engine, engine_full, comment FROM system.tables WHERE database = 'solana' AND name = 'blocks'",
    expected: /^View\t/,
  },
  {
    tool: 'superset',
    when: 'browse',
    source: INSPECTOR,
    sql: "SELECT name FROM system.columns WHERE database = 'solana' AND table = 'transactions' AND is_in_primary_key = 1 ORDER BY position",
    expected: /^slot\ntx_index\n$/,
  },
  {
    tool: 'superset',
    when: 'browse',
    source: INSPECTOR,
    sql: 'DESCRIBE TABLE `solana`.`blocks`',
    expected: /^slot\tUInt64\t/,
  },
  {
    tool: 'superset',
    when: 'browse',
    source: SUPERSET,
    sql: 'SELECT name FROM system.functions UNION ALL SELECT name FROM system.table_functions LIMIT 10000',
    expected: /^count$/m,
  },
  {
    tool: 'superset',
    when: 'chart',
    source: SUPERSET,
    sql: "SELECT toStartOfMinute(toDateTime(`block_time`)) AS `__timestamp`, count(*) AS `count` FROM `solana`.`transactions` WHERE `block_time` >= toDateTime('1970-01-01 00:00:00') GROUP BY toStartOfMinute(toDateTime(`block_time`)) ORDER BY `count` DESC LIMIT 10000",
  },
  {
    tool: 'superset',
    when: 'chart',
    source: SUPERSET,
    sql: 'SELECT toDateTime(intDiv(toUInt32(toDateTime(block_time)), 300)*300) AS t, count() AS n FROM solana.transactions GROUP BY t ORDER BY t',
  },
  {
    tool: 'metabase',
    when: 'connect',
    source: METABASE_VERSION,
    sql: "WITH s AS (SELECT version() AS ver, splitByChar('.', ver) AS verSplit) SELECT s.ver, toInt32(verSplit[1]), toInt32(verSplit[2]) FROM s",
    expected: /^25[.\d]+\t25\t8\n$/,
  },
  {
    tool: 'metabase',
    when: 'chart',
    source: METABASE,
    sql: 'SELECT toStartOfMonth(toDateTime(`solana`.`transactions`.`block_time`)) AS `block_time`, count(*) AS `count` FROM `solana`.`transactions` GROUP BY toStartOfMonth(toDateTime(`solana`.`transactions`.`block_time`)) ORDER BY toStartOfMonth(toDateTime(`solana`.`transactions`.`block_time`)) ASC',
    fields: { max_result_rows: '2000', result_overflow_mode: 'break' },
  },
  {
    tool: 'metabase',
    when: 'chart',
    source: METABASE,
    sql: "SELECT count(*) FROM `solana`.`transactions` WHERE `solana`.`transactions`.`block_time` >= parseDateTimeBestEffort('1970-01-01 00:00:00.000Z')",
  },
  {
    tool: 'jdbc',
    when: 'connect',
    source: JAVA,
    sql: 'SELECT currentUser() AS user, timezone() AS timezone, version() AS version LIMIT 1',
    expected: /^u_\w+\tUTC\t25[.\d]+\n$/,
  },
  {
    tool: 'jdbc',
    when: 'browse',
    source: JDBC,
    sql: "SELECT name AS TABLE_SCHEM, '' AS TABLE_CATALOG FROM system.databases ORDER BY name",
    expected: /^solana\t$/m,
  },
  {
    tool: 'jdbc',
    when: 'browse',
    source: JDBC,
    sql: "SELECT '' AS TABLE_CAT, t.database AS TABLE_SCHEM, t.name AS TABLE_NAME, CASE WHEN t.engine LIKE '%Log' THEN 'LOG TABLE' WHEN t.engine in ('Buffer', 'Memory', 'Set') THEN 'MEMORY TABLE' WHEN t.is_temporary != 0 THEN 'TEMPORARY TABLE' WHEN t.engine like '%View' THEN 'VIEW'WHEN t.engine = 'Dictionary' THEN 'DICTIONARY' WHEN t.engine LIKE 'Async%' OR t.engine LIKE 'System%' THEN 'SYSTEM TABLE' WHEN empty(t.data_paths) THEN 'REMOTE TABLE' ELSE 'TABLE' END AS TABLE_TYPE, t.comment AS REMARKS, null AS TYPE_CAT, d.engine AS TYPE_SCHEM, null AS TYPE_NAME, null AS SELF_REFERENCING_COL_NAME, null AS REF_GENERATION FROM system.tables t JOIN system.databases d ON system.tables.database = system.databases.name WHERE t.database LIKE 'solana' AND t.name LIKE '%' AND TABLE_TYPE IN ('TABLE','VIEW','SYSTEM TABLE')",
    expected: /^\tsolana\tblocks\tVIEW\t/m,
  },
  {
    tool: 'jdbc',
    when: 'browse',
    source: JDBC,
    sql: "SELECT '' AS TABLE_CAT, database AS TABLE_SCHEM, table AS TABLE_NAME, name AS COLUMN_NAME, system.columns.type AS DATA_TYPE, type AS TYPE_NAME, toInt32(0) AS BUFFER_LENGTH, IF (numeric_scale == 0, NULL, numeric_scale) as DECIMAL_DIGITS, toInt32(numeric_precision_radix) AS NUM_PREC_RADIX, system.columns.comment AS REMARKS, system.columns.default_expression AS COLUMN_DEF, character_octet_length AS CHAR_OCTET_LENGTH, toInt32(system.columns.position) AS ORDINAL_POSITION, NULL AS SCOPE_CATALOG, 'NO' as IS_AUTOINCREMENT FROM system.columns WHERE database LIKE 'solana' AND table LIKE 'blocks' AND name LIKE '%' ORDER BY TABLE_SCHEM, TABLE_NAME, ORDINAL_POSITION",
    expected: /^\tsolana\tblocks\tslot\tUInt64\tUInt64\t0\t/,
  },
  {
    tool: 'jdbc',
    when: 'browse',
    source: `${JDBC}, the part of getColumns with the conditional operator`,
    sql: "SELECT position(upper(type), 'NULLABLE') >= 1 ? 'YES' : 'NO' AS IS_NULLABLE FROM system.columns WHERE table = 'blocks' LIMIT 1",
    expected: /^NO\n$/,
  },
  {
    tool: 'jdbc',
    when: 'browse',
    source: JDBC,
    sql: "SELECT arrayJoin(['TABLE','VIEW']) AS TABLE_TYPE ORDER BY TABLE_TYPE",
    expected: /^TABLE\nVIEW\n$/,
  },
  {
    tool: 'jdbc',
    when: 'browse',
    source: JDBC,
    sql: "SELECT '' AS FUNCTION_CAT, '' AS FUNCTION_SCHEM, 0 AS FUNCTION_TYPE LIMIT 0",
    expected: /^$/,
  },
  {
    tool: 'jdbc',
    when: 'browse',
    source: `${JAVA}, getTableSchemaFromQuery`,
    sql: 'DESC (SELECT slot, leader FROM blocks) FORMAT TSKV',
    expected: /^name=slot\ttype=UInt64\t.*\nname=leader\ttype=LowCardinality\(String\)/,
  },
  {
    tool: 'jdbc',
    when: 'browse',
    source: `${JAVA}, getTableSchema`,
    sql: 'DESCRIBE TABLE blocks FORMAT TSKV',
    fields: { database: 'solana' },
    expected: /^name=slot\ttype=UInt64\t/,
  },
]
