/** Schemas of the embedded engine that hold the tables of `system` and `information_schema`; the engine has catalogues of its own by these names. */
export const CATALOGUE_SCHEMAS: Readonly<Record<string, string>> = {
  system: 'clickhouse_system',
  information_schema: 'clickhouse_information_schema',
}
