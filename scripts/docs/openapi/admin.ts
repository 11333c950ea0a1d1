import { z } from 'zod'
import {
  ADMIN_ROUTES,
  type AdminRoute,
  CSRF_HEADER,
  hasRevision,
  IDEMPOTENCY_HEADER,
  OIDC_CALLBACK_PATH,
  OIDC_LOGIN_PATH,
  SIGN_IN_PATH,
} from '../../../src/contract/admin-routes.ts'
import { ADMIN_BODIES, sessionBody } from '../../../src/contract/schemas/admin.ts'
import { ADMIN_CREATES, ADMIN_REPLIES, sessionReply, signInReply } from '../../../src/contract/schemas/admin-replies.ts'
import { USAGE_EXPORT_CONTENT_TYPES } from '../../../src/contract/usage-export.ts'
import { INFO, json, type OpenApi, type Operation, pathParameter, queryParameter, ref, schemaOf } from './document.ts'

const errorBody = z.object({
  error: z.object({
    code: z.string(),
    message: z.string(),
    fix: z.string(),
    docs_url: z.url().optional().describe('Where the documents have a page about this error.'),
    request_id: z.string(),
  }),
})

const SESSION_PATH = '/v1/session'
const FAILURES = {
  '4XX': json('Refused; the fix is in the body.', 'Error'),
  '503': json('The store is busy or away.', 'Error'),
  '5XX': json('Not available in this process (501), or an error of ours: read before you repeat a change.', 'Error'),
}
const EXPORT = (description: string) => ({
  description,
  content: Object.fromEntries(
    Object.values(USAGE_EXPORT_CONTENT_TYPES).map((type) => [type.split(';')[0], { schema: { type: 'string' } }]),
  ),
})

/** The admin API, from its table of routes. */
export function adminOpenApi(): OpenApi {
  const paths: Record<string, Record<string, Operation>> = {}
  const schemas: Record<string, object> = {
    Error: schemaOf(errorBody),
    Result: { type: 'object', additionalProperties: true },
    SessionRequest: schemaOf(sessionBody),
    Session: schemaOf(sessionReply),
    SignIn: schemaOf(signInReply),
  }
  const bodies: { readonly [id: string]: z.ZodType } = ADMIN_BODIES
  const replies: { readonly [id: string]: z.ZodType } = ADMIN_REPLIES
  for (const [id, route] of Object.entries(ADMIN_ROUTES) as [string, AdminRoute][]) {
    const { method, path, brief, permission } = route
    const body = bodies[id]
    const name = `${id[0]?.toUpperCase()}${id.slice(1)}`
    if (body !== undefined) schemas[`${name}Request`] = schemaOf(body)
    const reply = replies[id]
    if (reply !== undefined) schemas[name] = schemaOf(reply)
    const done = id === 'usageExport' ? EXPORT : (description: string) => json(description, reply ? name : 'Result')
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
              content: { 'application/json': { schema: ref(`${name}Request`) } },
            },
          }),
      responses: {
        '200': done(ADMIN_CREATES.has(id) ? 'Dry run.' : 'Done.'),
        ...(ADMIN_CREATES.has(id) ? { '201': done('Created.') } : {}),
        ...FAILURES,
      },
    }
  }
  paths[SESSION_PATH] = sessionOperations()
  Object.assign(paths, signInOperations())
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

function sessionOperations(): Record<string, Operation> {
  const session = (description: string) => json(description, 'Session')
  const csrf = {
    ...{ name: CSRF_HEADER, in: 'header', required: true, description: '`csrf_token` of the session.' },
    schema: { type: 'string' },
  }
  return {
    post: {
      operationId: 'sessionOpen',
      summary: 'Sign in with a token; the response sets the cookie of the session.',
      security: [],
      requestBody: { required: true, content: { 'application/json': { schema: ref('SessionRequest') } } },
      responses: { '201': session('Signed in.'), ...FAILURES },
    },
    get: {
      operationId: 'sessionShow',
      summary: 'The session of the cookie, with its CSRF token.',
      security: [{ session: [] }],
      responses: { '200': session('The session.'), ...FAILURES },
    },
    delete: {
      operationId: 'sessionEnd',
      summary: 'Sign out.',
      security: [{ session: [] }],
      parameters: [csrf],
      responses: { '200': json('Signed out.', 'Result'), ...FAILURES },
    },
  }
}

/** What a browser opens to sign in. */
function signInOperations(): Record<string, Record<string, Operation>> {
  const text = (description: string) => ({ description, content: { 'text/plain': { schema: { type: 'string' } } } })
  const failures = { '4XX': text('Refused, or not configured.'), '503': text('The issuer is not available.') }
  const redirect = (description: string) => ({ '303': { description }, ...failures })
  return {
    [SIGN_IN_PATH]: {
      get: {
        operationId: 'signInWays',
        summary: 'The methods of signing in.',
        security: [],
        responses: { '200': json('The methods.', 'SignIn'), '4XX': json('Refused; the fix is in the body.', 'Error') },
      },
    },
    [OIDC_LOGIN_PATH]: {
      get: {
        operationId: 'oidcLogin',
        summary: 'Sends the browser to the OpenID Connect issuer.',
        security: [],
        responses: redirect('To the issuer.'),
      },
    },
    [OIDC_CALLBACK_PATH]: {
      get: {
        operationId: 'oidcCallback',
        summary: 'The issuer sends the browser back here; the response sets the cookie of the session.',
        security: [],
        parameters: [
          queryParameter('code', 'Authorization code.'),
          queryParameter('state', 'As it was sent to the issuer.'),
          queryParameter('iss', 'Issuer, where it names itself.'),
          queryParameter('error', 'Error code of the issuer.'),
        ],
        responses: redirect('To the console.'),
      },
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
          ...(hasRevision({ method, path }) ? [header('if-match', 'ETag of the record.')] : []),
        ]),
  ]
}
