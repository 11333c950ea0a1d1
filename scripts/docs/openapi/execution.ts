import type { z } from 'zod'
import {
  BLOCKS_HELD_HEADER,
  EXECUTION_ROUTES,
  EXECUTION_RPC_METHODS,
  EXECUTION_TICKET_PATH,
} from '../../../src/contract/execution-routes.ts'
import * as customer from '../../../src/contract/schemas/customer.ts'
import * as schemas from '../../../src/contract/schemas/execution.ts'
import * as histories from '../../../src/contract/schemas/execution-history.ts'
import { conflictData, contentionData, topAccesses } from '../../../src/contract/schemas/stream.ts'
import {
  ANY_TOKEN,
  INFO,
  json,
  NO_RESPONSES,
  NO_TOKEN,
  type OpenApi,
  type Operation,
  pathParameter,
  queryParameter,
  RETRY_AFTER,
  ref,
  rpcResponse,
  rpcRequestBody,
  schemaOf,
  TOKEN_SCHEMES,
  text,
} from './document.ts'

type Path = Exclude<(typeof EXECUTION_ROUTES)[number]['path'], '/' | '/metrics'>

const SCHEMAS = {
  Tps: schemas.tpsRecord,
  ContentionData: contentionData,
  ConflictData: conflictData,
  TopAccesses: topAccesses,
  Status: schemas.statusRecord,
  RecentBlocks: schemas.recentBlocks,
  LifecycleRecord: schemas.lifecycleRecord,
  History: histories.history,
  BlockTransactions: histories.blockTransactions,
  SearchResults: histories.searchResults,
  ContractFigures: histories.contractFigures,
  Health: schemas.healthRecord,
  RouteError: schemas.routeError,
  LimitError: schemas.limitError,
  PageError: customer.pageError,
  WsTicket: customer.wsTicket.omit({ url: true }),
  RpcRequest: customer.rpcRequest,
  RpcResponse: customer.rpcResponse,
} satisfies Record<string, z.ZodType>

/** The response of each path. A route without an entry does not compile. */
const RESPONSES: Record<Path, { readonly id: string; readonly schema: keyof typeof SCHEMAS; readonly isList?: true }> = {
  '/v1/tps': { id: 'tps', schema: 'Tps' },
  '/v1/contention': { id: 'contention', schema: 'ContentionData' },
  '/v1/conflicts': { id: 'conflicts', schema: 'ConflictData' },
  '/v1/top-accesses': { id: 'topAccesses', schema: 'TopAccesses' },
  '/v1/status': { id: 'status', schema: 'Status' },
  '/v1/blocks': { id: 'recentBlocks', schema: 'RecentBlocks' },
  '/v1/blocks/lifecycle': { id: 'lifecycles', schema: 'LifecycleRecord', isList: true },
  '/v1/blocks/:number/lifecycle': { id: 'lifecycleOfBlock', schema: 'LifecycleRecord' },
  '/v1/blocks/:number/contention': { id: 'contentionOfBlock', schema: 'ContentionData' },
  '/v1/blocks/:number/transactions': { id: 'transactionsOfBlock', schema: 'BlockTransactions' },
  '/v1/history': { id: 'history', schema: 'History' },
  '/v1/search': { id: 'search', schema: 'SearchResults' },
  '/v1/contracts/:address': { id: 'contract', schema: 'ContractFigures' },
  '/health': { id: 'health', schema: 'Health' },
}

/** Open unless the operator requires a token. */
const MAYBE_TOKEN = [{}, ...ANY_TOKEN] as const
const BLOCK = pathParameter('number', 'Number of the block.', { type: 'integer', format: 'uint64', minimum: 0 })

const ADDRESS = pathParameter('address', 'Address of the contract.', { type: 'string', pattern: '^0x[0-9a-fA-F]{40}$' })

/** Parameters of the paths that have any. */
const PARAMETERS: Partial<Record<Path, Operation['parameters']>> = {
  '/v1/blocks': [
    queryParameter('count', 'How many blocks.', { type: 'integer', minimum: 1, maximum: 512, default: 120 }),
  ],
  '/v1/blocks/:number/lifecycle': [BLOCK],
  '/v1/blocks/:number/contention': [BLOCK],
  '/v1/blocks/:number/transactions': [
    BLOCK,
    queryParameter('limit', 'How many transactions.', { type: 'integer', minimum: 1, maximum: 500, default: 100 }),
    queryParameter('offset', 'Index of the first one.', {
      ...{ type: 'integer', minimum: 0, default: 0 },
      maximum: 999_999_999,
    }),
  ],
  '/v1/search': [
    {
      ...queryParameter(
        'q',
        'A block number, block hash, transaction hash, address, name, or the beginning of a hash or address from 4 hex characters on.',
        { type: 'string', minLength: 1, maxLength: 80, pattern: '\\S' },
      ),
      required: true,
    },
  ],
  '/v1/contracts/:address': [ADDRESS],
}

const NOT_FOUND: Partial<Record<Path, string>> = {
  '/v1/blocks/:number/lifecycle': 'This block is not tracked.',
  '/v1/blocks/:number/contention': 'This block is not tracked.',
  '/v1/blocks/:number/transactions': 'This block is not held; the error has the numbers that are.',
  '/v1/contracts/:address': 'The last blocks have no figures of this contract.',
}

const TOO_MANY = json('A limit is reached; the body names it.', 'LimitError', RETRY_AFTER)

function readOf(path: Path, brief: string, isOpen: boolean): Operation {
  const { id, schema, isList } = RESPONSES[path]
  const good = isList
    ? { description: brief, content: { 'application/json': { schema: { type: 'array', items: ref(schema) } } } }
    : json(brief, schema)
  const parameters = PARAMETERS[path]
  const missing = NOT_FOUND[path]
  return {
    operationId: id,
    summary: brief,
    security: isOpen ? NO_TOKEN : MAYBE_TOKEN,
    ...(parameters === undefined ? {} : { parameters }),
    responses: {
      '200': good,
      ...(isOpen ? {} : { '401': json('A token is required.', 'RpcResponse') }),
      ...(parameters === undefined ? {} : { '400': json('A parameter is not valid.', 'RouteError') }),
      ...(missing === undefined ? {} : { '404': json(missing, 'RouteError') }),
      ...(path === '/health'
        ? { '405': json('Use GET.', 'PageError'), '503': json('No event arrived for 30 s.', 'Health') }
        : { '503': json('There is no data yet.', 'RouteError') }),
      '429': TOO_MANY,
    },
  }
}

/** The execution service over HTTP; its stream is described by AsyncAPI. */
export function executionOpenApi(): OpenApi {
  const paths: OpenApi['paths'] = {}
  for (const { path, brief, open } of EXECUTION_ROUTES) {
    if (path === '/' || path === '/metrics') continue
    paths[path.replace(/:(\w+)/, '{$1}')] = { get: readOf(path, brief, open) }
  }
  paths['/metrics'] = {
    get: {
      operationId: 'metrics',
      summary: 'Prometheus text',
      security: MAYBE_TOKEN,
      responses: {
        '200': text('Counters and gauges of the service.'),
        '401': json('A token is required.', 'RpcResponse'),
        '429': TOO_MANY,
      },
    },
  }
  paths[EXECUTION_TICKET_PATH] = {
    post: {
      operationId: 'issueTicket',
      summary: 'A ticket that opens the stream, for clients that cannot set headers',
      description: 'Only where the service requires tokens.',
      security: ANY_TOKEN,
      responses: {
        '200': json('Valid for 60 s.', 'WsTicket'),
        '401': json('A token is required.', 'RpcResponse'),
        '404': json('No token is required here, so there are no tickets.', 'PageError'),
        '429': TOO_MANY,
      },
    },
  }
  paths['/'] = {
    get: {
      operationId: 'page',
      summary: 'The live page; with an upgrade the stream',
      security: NO_TOKEN,
      responses: { '200': text('The page.', 'text/html'), '404': json('This version has no page.', 'RouteError') },
    },
    post: {
      operationId: 'ethCall',
      summary: 'JSON-RPC 2.0 over the last blocks',
      description: `Methods: ${EXECUTION_RPC_METHODS.join(', ')}. Others are -32601. The header ${BLOCKS_HELD_HEADER} of every response has the block numbers that can be read, as FROM-TO, or several such ranges with commas.`,
      security: MAYBE_TOKEN,
      requestBody: rpcRequestBody('eth_blockNumber'),
      responses: {
        '200': rpcResponse('The response, or a JSON-RPC error.'),
        '204': NO_RESPONSES,
        '401': json('A token is required.', 'RpcResponse'),
        '413': json('The body or the batch is too large.', 'RpcResponse'),
        '415': json('The content type is not JSON, or the body is compressed.', 'RpcResponse'),
        '429': rpcResponse('A limit is reached: by the only call, or by every call of a batch.', RETRY_AFTER),
      },
    },
  }
  return {
    openapi: '3.1.0',
    info: INFO(
      'Sluice: execution service',
      "TPS, contention, hot accounts and block lifecycles of a node's event ring. Responses with simulated data have the header `x-data-source: simulated`.",
    ),
    servers: [{ url: 'http://127.0.0.1:8443', description: 'Local default.' }],
    paths,
    components: {
      securitySchemes: { token: TOKEN_SCHEMES.token, bearer: TOKEN_SCHEMES.bearer },
      schemas: Object.fromEntries(Object.entries(SCHEMAS).map(([name, schema]) => [name, schemaOf(schema)])),
    },
  }
}
