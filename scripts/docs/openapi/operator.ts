import { operatorHealth, pageError } from '../../../src/contract/schemas/customer.ts'
import { INFO, json, NO_TOKEN, type OpenApi, schemaOf, text } from './document.ts'

/** The listener of the operator, and the door of the indexer. */
export function operatorOpenApi(): OpenApi {
  const health = (operationId: string, summary: string) => ({
    operationId,
    summary,
    security: NO_TOKEN,
    responses: {
      '200': json('Well.', 'Health'),
      '405': json('Use GET.', 'Error'),
      '503': json('Not ready for work.', 'Health'),
    },
  })
  return {
    openapi: '3.1.0',
    info: INFO('Sluice: operator', 'Metrics and health of the whole process. Not for customers.'),
    servers: [{ url: 'http://127.0.0.1:9464', description: 'A local start.' }],
    paths: {
      '/metrics': {
        get: {
          operationId: 'metrics',
          summary: 'Prometheus text, or OpenMetrics where asked for',
          security: [{}, { bearer: [] }],
          responses: { '200': text('All series.'), '401': json('A bearer is configured.', 'Error') },
        },
      },
      '/healthz': { get: health('alive', 'Whether the process lives') },
      '/readyz': { get: health('ready', 'Whether work may be sent here') },
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
      '200': text('Rows in the format asked for; `X-ClickHouse-Summary` tells what was read.'),
      '400': text('`Code: N. DB::Exception: …`, as ClickHouse says it.'),
      '401': text('The token or the login is missing or wrong; the same whichever it is.'),
      '429': text('A limit of the plan is reached.'),
      '503': text('The database is away.'),
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
      "Blocks in tables, asked in SQL over ClickHouse's HTTP interface. Tables: docs/schema.md.",
    ),
    servers: [{ url: 'http://127.0.0.1:8123', description: 'A local start.' }],
    paths: {
      '/': {
        get: {
          operationId: 'queryByGet',
          ...query,
          parameters: [
            parameter('query', 'The statement.'),
            parameter('default_format', 'Format of the answer, such as JSONEachRow.'),
          ],
        },
        post: {
          operationId: 'query',
          ...query,
          parameters: [parameter('query', 'The statement, or its beginning; the body is appended.')],
          requestBody: { required: false, content: { 'text/plain': { schema: { type: 'string' } } } },
        },
      },
      '/ping': {
        get: {
          operationId: 'ping',
          summary: 'Whether the door is open',
          security: NO_TOKEN,
          responses: { '200': text('`Ok.`'), '405': text('Use GET.') },
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
      schemas: {},
    },
  }
}
