/**
 * ClickHouse settings that a customer may give, in the URL, after SETTINGS, or with SET in a session. `system.settings`, SHOW SETTINGS and
 * docs/schema.md are made from this list; every other setting is refused.
 */
export type Setting = {
  readonly name: string
  readonly type: 'UInt64' | 'Bool' | 'Seconds' | 'String' | 'Timezone'
  /** Value that holds when the setting is not given. */
  readonly value: string
  /**
   * `honoured`: changes the result or the limits. `without effect`: changes speed, logs or what is inserted on a ClickHouse server, and nothing
   * here. A list: the only values that agree with what happens here.
   */
  readonly effect: 'honoured' | 'without effect' | readonly string[]
  readonly help: string
}

type Row = readonly [name: string, type: Setting['type'], value: string, help: string]

const HONOURED: readonly Row[] = [
  ['max_execution_time', 'Seconds', '0', 'time limit of the query; that of the operator still holds'],
  ['max_result_rows', 'UInt64', '0', 'most rows of the result; the limit of the operator still holds'],
  ['max_result_bytes', 'UInt64', '0', 'most bytes of the result; the limit of the operator still holds'],
  [
    'result_overflow_mode',
    'String',
    'throw',
    'throw, or break: the result ends at max_result_rows. At the limit of the operator a result is never truncated',
  ],
  ['output_format_json_quote_64bit_integers', 'Bool', '1', 'quotes 64-bit numbers in JSON'],
  ['enable_http_compression', 'Bool', '0', 'compresses the response as Accept-Encoding allows'],
  [
    'session_timezone',
    'Timezone',
    '',
    'what timezone() returns. With a zone other than UTC the embedded engine refuses times without a zone of their own: write toDateTime(x, zone)',
  ],
  ['date_time_output_format', 'String', 'simple', 'simple, iso or unix_timestamp, in the text formats'],
  [
    'join_use_nulls',
    'Bool',
    '1',
    'the side of an outer join without a match is NULL; with 0 it has the defaults of its types',
  ],
  ['send_progress_in_http_headers', 'Bool', '0', 'adds X-ClickHouse-Progress to the response'],
  ['client_protocol_version', 'UInt64', '0', 'revision of the protocol in which blocks of Native are written'],
]

const FIXED: readonly (readonly [...Row, readonly string[]])[] = [
  ['readonly', 'UInt64', '1', 'statements only read', ['1', '2']],
  ['timeout_overflow_mode', 'String', 'throw', 'a query over its time limit is an error', ['throw']],
  ['extremes', 'Bool', '0', 'no extremes are added to a result', ['0']],
  ['output_format_json_quote_64bit_floats', 'Bool', '0', 'floats are not quoted in JSON', ['0']],
  ['output_format_json_quote_denormals', 'Bool', '0', 'nan and inf are null in JSON', ['0']],
  ['output_format_json_quote_decimals', 'Bool', '0', 'decimals are not quoted in JSON', ['0']],
  ['output_format_json_array_of_rows', 'Bool', '0', 'JSONEachRow has one row a line', ['0']],
  ['output_format_json_named_tuples_as_objects', 'Bool', '1', 'named tuples are objects in JSON', ['1']],
  ['cancel_http_readonly_queries_on_client_close', 'Bool', '1', 'a query ends with its connection', ['1']],
]

const WITHOUT_EFFECT: Readonly<
  Record<string, readonly (readonly [name: string, type: Setting['type'], value: string])[]>
> = {
  'how a server schedules and reads': [
    ['max_threads', 'UInt64', '0'],
    ['max_block_size', 'UInt64', '65409'],
    ['preferred_block_size_bytes', 'UInt64', '1000000'],
    ['priority', 'UInt64', '0'],
    ['load_balancing', 'String', 'random'],
    ['prefer_localhost_replica', 'Bool', '1'],
    ['use_uncompressed_cache', 'Bool', '0'],
    ['use_query_cache', 'Bool', '0'],
    ['optimize_read_in_order', 'Bool', '1'],
    ['optimize_move_to_prewhere', 'Bool', '1'],
    ['enable_analyzer', 'Bool', '1'],
    ['allow_experimental_analyzer', 'Bool', '1'],
    ['final', 'Bool', '0'],
    ['do_not_merge_across_partitions_select_final', 'Bool', '0'],
    ['max_bytes_before_external_group_by', 'UInt64', '0'],
    ['max_bytes_before_external_sort', 'UInt64', '0'],
    ['compile_expressions', 'Bool', '1'],
    ['distributed_group_by_no_merge', 'UInt64', '0'],
  ],
  'connections and logs of a server': [
    ['connect_timeout', 'Seconds', '10'],
    ['send_timeout', 'Seconds', '300'],
    ['receive_timeout', 'Seconds', '300'],
    ['http_connection_timeout', 'Seconds', '1'],
    ['http_send_timeout', 'Seconds', '30'],
    ['http_receive_timeout', 'Seconds', '30'],
    ['http_headers_progress_interval_ms', 'UInt64', '100'],
    ['http_zlib_compression_level', 'UInt64', '3'],
    ['network_compression_method', 'String', 'LZ4'],
    ['network_zstd_compression_level', 'UInt64', '1'],
    ['log_queries', 'Bool', '1'],
    ['log_comment', 'String', ''],
    ['log_query_threads', 'Bool', '0'],
    ['send_logs_level', 'String', 'fatal'],
    ['skip_unavailable_shards', 'Bool', '0'],
  ],
  'statements that write, which are refused': [
    ['date_time_input_format', 'String', 'basic'],
    ['input_format_null_as_default', 'Bool', '1'],
    ['input_format_skip_unknown_fields', 'Bool', '1'],
    ['max_insert_block_size', 'UInt64', '1048449'],
    ['async_insert', 'Bool', '0'],
    ['wait_for_async_insert', 'Bool', '1'],
    ['insert_distributed_sync', 'Bool', '0'],
    ['insert_quorum', 'UInt64', '0'],
    ['insert_deduplicate', 'Bool', '1'],
    ['mutations_sync', 'UInt64', '0'],
    ['alter_sync', 'UInt64', '1'],
    ['replication_alter_partitions_sync', 'UInt64', '1'],
    ['implicit_transaction', 'Bool', '0'],
    ['throw_on_unsupported_query_inside_transaction', 'Bool', '1'],
    ['wait_changes_become_visible_after_commit_mode', 'String', 'wait_unknown'],
    ['allow_experimental_lightweight_delete', 'Bool', '1'],
    ['allow_suspicious_low_cardinality_types', 'Bool', '0'],
    ['allow_experimental_object_type', 'Bool', '0'],
  ],
  'spellings of the same value': [
    ['output_format_json_escape_forward_slashes', 'Bool', '0'],
    ['output_format_json_validate_utf8', 'Bool', '0'],
    ['output_format_json_pretty_print', 'Bool', '0'],
    ['output_format_arrow_string_as_string', 'Bool', '1'],
    ['output_format_arrow_compression_method', 'String', 'none'],
    ['output_format_parquet_string_as_string', 'Bool', '1'],
    ['output_format_parquet_compression_method', 'String', 'none'],
    ['output_format_pretty_color', 'Bool', '0'],
    ['output_format_pretty_row_numbers', 'Bool', '0'],
  ],
}

export const SETTINGS: readonly Setting[] = [
  ...HONOURED.map(([name, type, value, help]) => ({ name, type, value, help, effect: 'honoured' as const })),
  ...FIXED.map(([name, type, value, help, effect]) => ({ name, type, value, help, effect })),
  ...Object.entries(WITHOUT_EFFECT).flatMap(([help, rows]) =>
    rows.map(([name, type, value]) => ({ name, type, value, help, effect: 'without effect' as const })),
  ),
].toSorted((a, b) => (a.name < b.name ? -1 : 1))

export const SETTINGS_BY_NAME: ReadonlyMap<string, Setting> = new Map(SETTINGS.map((each) => [each.name, each]))
