import { operatorHealth, pageError } from '../../../src/contract/schemas/customer.ts'
import { INFO, json, NO_TOKEN, type OpenApi, RETRY_AFTER, schemaOf, text } from './document.ts'

/** The operator listener, and the endpoint of the indexer. */
export function operatorOpenApi(): OpenApi {
  const health = (operationId: string, summary: string) => ({
    operationId,
    summary,
    security: NO_TOKEN,
    responses: {
      '200': json('Well.', 'Health'),
      '405': json('Use GET.', 'Error'),
      '503': json('Not ready.', 'Health'),
    },
  })
  return {
    openapi: '3.1.0',
    info: INFO('Sluice: operator', 'Metrics and health of the process. Not for customers.'),
    servers: [{ url: 'http://127.0.0.1:9464', description: 'Local default.' }],
    paths: {
      '/metrics': {
        get: {
          operationId: 'metrics',
          summary: 'Prometheus text, or OpenMetrics on request',
          security: [{}, { bearer: [] }],
          responses: { '200': text('All series.'), '401': json('A bearer is configured.', 'Error') },
        },
      },
      '/healthz': { get: health('alive', 'Whether the process is alive') },
      '/readyz': { get: health('ready', 'Whether the process is ready') },
    },
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
      schemas: { Health: schemaOf(operatorHealth), Error: schemaOf(pageError) },
    },
  }
}

export function indexerOpenApi(): OpenApi {
  const query = {
    summary: 'One SELECT',
    security: [{ token: [], login: [] }],
    responses: {
      '200': text('Rows in the requested format; `X-ClickHouse-Summary` has rows and bytes read.'),
      '400': text('`Code: N. DB::Exception: …`, as in ClickHouse.'),
      '401': text('The token or the login is missing or wrong; the response does not show which.'),
      '404': text('A table, function, format, setting or session does not exist.'),
      '408': text('The query runs longer than it may.'),
      '409': text('Another statement runs in the session.'),
      '413': text('The query is too large.'),
      '429': text('A limit of the plan is reached.', 'text/plain', RETRY_AFTER),
      '500': text('The result or the memory of the query is larger than allowed.'),
      '501': text('The query uses what is not implemented.'),
      '503': text('The database is unavailable.', 'text/plain', RETRY_AFTER),
    },
  }
  const parameter = (name: string, description: string) => ({
    name,
    in: 'query',
    required: false,
    description,
    schema: { type: 'string' },
  })
  return {
    openapi: '3.1.0',
    info: INFO(
      'Sluice: indexer',
      "Chain data in tables, with SQL over ClickHouse's HTTP interface. Tables: docs/schema.md.",
    ),
    servers: [{ url: 'http://127.0.0.1:8123', description: 'Local default.' }],
    paths: {
      '/': {
        get: {
          operationId: 'queryByGet',
          ...query,
          parameters: [
            parameter('query', 'The statement.'),
            parameter('default_format', 'Format of the result, such as JSONEachRow.'),
          ],
        },
        post: {
          operationId: 'query',
          ...query,
          parameters: [parameter('query', 'The statement, or its first part; the body is appended.')],
          requestBody: {
            required: false,
            content: {
              'text/plain': { schema: { type: 'string' } },
              'multipart/form-data': {
                schema: {
                  type: 'object',
                  description: '`query` and `param_NAME`.',
                  additionalProperties: { type: 'string' },
                },
              },
            },
          },
        },
      },
      '/ping': {
        get: {
          operationId: 'ping',
          summary: 'Health check',
          security: NO_TOKEN,
          responses: { '200': text('`Ok.`'), '405': json('Use GET.', 'Error') },
        },
      },
    },
    components: {
      securitySchemes: {
        token: { type: 'apiKey', in: 'header', name: 'x-token' },
        login: {
          type: 'http',
          scheme: 'basic',
          description: 'Database user and password; also X-ClickHouse-User and -Key.',
        },
      },
      schemas: { Error: schemaOf(pageError) },
    },
  }
}
