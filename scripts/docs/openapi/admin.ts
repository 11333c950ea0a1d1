import { z } from 'zod'
import { ADMIN_ROUTES, type AdminRoute, IDEMPOTENCY_HEADER } from '../../../src/contract/admin-routes.ts'
import { ADMIN_BODIES } from '../../../src/contract/schemas/admin.ts'
import { INFO, json, type OpenApi, type Operation, pathParameter, queryParameter, schemaOf } from './document.ts'

const errorBody = z.object({
  error: z.object({ code: z.string(), message: z.string(), fix: z.string(), request_id: z.string() }),
})

/** The admin API, from its table of routes. */
export function adminOpenApi(): OpenApi {
  const paths: Record<string, Record<string, Operation>> = {}
  const schemas: Record<string, object> = { Error: schemaOf(errorBody), Result: { type: 'object' } }
  const bodies: { readonly [id: string]: z.ZodType } = ADMIN_BODIES
  for (const [id, route] of Object.entries(ADMIN_ROUTES) as [string, AdminRoute][]) {
    const { method, path, brief, permission } = route
    const body = bodies[id]
    const name = `${id[0]?.toUpperCase()}${id.slice(1)}`
    if (body !== undefined) schemas[name] = schemaOf(body)
    paths[path] ??= {}
    paths[path][method.toLowerCase()] = {
      operationId: id,
      summary: brief,
      description: `Permission: ${permission}.`,
      security: [{ bearer: [] }, { session: [] }],
      parameters: parametersOf(route),
      ...(body === undefined
        ? {}
        : {
            requestBody: {
              required: !body.safeParse(undefined).success,
              content: { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } },
            },
          }),
      responses: {
        '200': json('Done.', 'Result'),
        ...(method === 'POST' ? { '201': json('Created.', 'Result') } : {}),
        '4XX': json('Refused; the fix is in the body.', 'Error'),
        '503': json('The store is busy or away.', 'Error'),
      },
    }
  }
  return {
    openapi: '3.1.0',
    info: INFO('Sluice: admin', 'Provisioning and state, for the operator. Not for customers.'),
    servers: [{ url: 'http://127.0.0.1:9470', description: 'Local default.' }],
    paths,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'Token of an administrator, sla_….' },
        session: { type: 'apiKey', in: 'cookie', name: 'sluice_admin', description: 'From POST /v1/session.' },
      },
      schemas,
    },
  }
}

function parametersOf({ method, path, query = [] }: AdminRoute): object[] {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  const header = (name: string, description: string) => ({
    ...{ name, in: 'header', required: false, description },
    schema: { type: 'string' },
  })
  return [
    ...names.map((name) => pathParameter(name, 'Name or id.')),
    ...query.map((name) => queryParameter(name, `See docs/admin-api.md: ${name}.`)),
    ...(method === 'GET'
      ? []
      : [
          queryParameter('dry_run', 'Performs all checks, changes nothing.', { type: 'boolean' }),
          header(IDEMPOTENCY_HEADER, 'A repeated request with the same key is performed once.'),
          header('if-match', 'ETag of the record.'),
        ]),
  ]
}
