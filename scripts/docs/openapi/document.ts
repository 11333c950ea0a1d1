import { z } from 'zod'
import { VERSION } from '../../../src/processes/compose/process/version.ts'

/** The parts of OpenAPI 3.1 that these documents use. */
export type OpenApi = {
  readonly openapi: '3.1.0'
  readonly info: object
  readonly servers: readonly { readonly url: string; readonly description: string }[]
  readonly paths: Record<string, Record<string, Operation>>
  readonly components: { readonly schemas: Record<string, object>; readonly securitySchemes: Record<string, object> }
}

export type Operation = {
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  readonly security: readonly Record<string, readonly string[]>[]
  readonly parameters?: readonly object[]
  readonly requestBody?: object
  readonly responses: Record<string, object>
}

export const INFO = (title: string, description: string) => ({
  title,
  description,
  version: VERSION,
  license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
})

/** Security schemes: the headers that carry a token. */
export const TOKEN_SCHEMES = {
  token: { type: 'apiKey', in: 'header', name: 'x-token', description: 'Accepted by every endpoint.' },
  bearer: { type: 'http', scheme: 'bearer', description: 'Accepted by every endpoint.' },
  apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'RPC only.' },
} as const
export const ANY_TOKEN = [{ token: [] }, { bearer: [] }] as const
export const NO_TOKEN = [] as const

/** The JSON Schema of a body. */
export function schemaOf(schema: z.ZodType, target: 'draft-2020-12' | 'draft-7' = 'draft-2020-12'): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    target,
    io: 'output',
    override({ jsonSchema }) {
      delete jsonSchema.readOnly
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
    },
  })
  return rest
}

export const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })

export function json(description: string, name: string, more: object = {}): object {
  return { description, ...more, content: { 'application/json': { schema: ref(name) } } }
}

export function text(description: string, type = 'text/plain', more: object = {}): object {
  return { description, ...more, content: { [type]: { schema: { type: 'string' } } } }
}

/** One JSON-RPC call or a batch of them, as the body of a request. */
export function rpcRequestBody(exampleMethod: string): object {
  return {
    required: true,
    content: {
      'application/json': {
        schema: oneOrBatch('RpcRequest', { minItems: 1 }),
        example: { jsonrpc: '2.0', id: 1, method: exampleMethod },
      },
    },
  }
}

export function rpcResponse(description: string, more: object = {}): object {
  return {
    description,
    ...more,
    content: { 'application/json': { schema: oneOrBatch('RpcResponse') } },
  }
}

function oneOrBatch(name: string, more: object = {}): object {
  return { oneOf: [ref(name), { type: 'array', items: ref(name), ...more }] }
}

/** Headers of a response with 429 or 503. */
export const RETRY_AFTER = { headers: { 'retry-after': { schema: { type: 'integer' }, description: 'Seconds.' } } }

/** The response to notifications only: there is nothing to return. */
export const NO_RESPONSES = { description: 'No call has an id, so there are no responses.' }

export function pathParameter(name: string, description: string, schema: object = { type: 'string' }): object {
  return { name, in: 'path', required: true, description, schema }
}

export function queryParameter(name: string, description: string, schema: object = { type: 'string' }): object {
  return { name, in: 'query', required: false, description, schema }
}
