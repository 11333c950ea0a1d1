import { z } from 'zod'
import { GRPC_KINDS, type Limits } from '../contract/limits.ts'
import { integer, section } from '../contract/option-fields.ts'
import { parsedBy } from '../platform/config/parsed-by.ts'
import { isSecretRef, SECRET_REF_RULE } from '../platform/config/secret-ref.ts'
import { parsePostgresUrl } from '../platform/db/postgres-url.ts'
import { parseRedisUrl } from '../platform/db/redis-url.ts'
import { BATCH_ITEMS_DEFAULT, BUILT_IN_PLANS, findPlanFaults, type Plans, REQUEST_BYTES_DEFAULT } from './plan.ts'

const MIB = 1024 * 1024

/** TOML has no null, so `unlimited` removes a limit. */
const unlimited = z.union([z.literal('unlimited'), z.null()]).transform(() => null)
const rate = z.number().min(0).max(100_000_000)
const orUnlimited = <T extends z.ZodType>(number: T) => z.union([number, unlimited])
const count = integer(0, 100_000_000)

const methodLimit = z.strictObject({
  cost: integer(0, 1_000_000).optional().describe('Units that one call costs, instead of the default.'),
  perSecond: rate.optional().describe('Calls per second, with a burst of ten seconds.'),
})

const limitFields = {
  unitsPerSecond: orUnlimited(rate.gt(0)).describe(
    'Units per second over all three interfaces, with a burst of ten seconds.',
  ),
  sendsPerSecond: orUnlimited(rate).describe('Calls of sendTransaction per second, in addition to their units.'),
  unitsPerMonth: orUnlimited(z.int().min(0)).describe('Units in a calendar month (UTC).'),
  wsConnections: orUnlimited(count).describe('Open WebSocket connections.'),
  wsSubscriptions: orUnlimited(count).describe('Active WebSocket subscriptions over all connections.'),
  grpcStreams: orUnlimited(count).describe('Open gRPC streams.'),
  grpcAccountsPerStream: orUnlimited(count).describe('Accounts in the filters of one gRPC stream.'),
  grpcKinds: orUnlimited(z.array(z.enum(GRPC_KINDS)).max(GRPC_KINDS.length)).describe(
    `Kinds of filters that a gRPC stream may have: ${GRPC_KINDS.join(', ')}. With it, a field that is not known here is refused.`,
  ),
  grpcBlockedOwners: z
    .array(z.string().regex(/^[1-9A-HJ-NP-Za-km-z]{32,44}$/, 'give an address as base58'))
    .max(256)
    .describe('Accounts and programs that no gRPC filter may match, whether it names them or matches everything.'),
  grpcResume: z
    .boolean()
    .describe('Whether a gRPC stream whose node fails continues at another node instead of ending.'),
  requestBytes: integer(1024, 16 * MIB).describe('Bytes of one request body.'),
  batchItems: integer(1, 10_000).describe('Calls in one batch.'),
  methods: z
    .record(z.string().min(1).max(64), methodLimit)
    .refine((methods) => Object.keys(methods).length <= 256, 'at most 256 methods can have their own limits')
    .describe('Cost and rate of single methods.'),
}

/** Limits of one subscription that differ from its plan's. */
export const overridesSchema = z.strictObject(limitFields).partial()

/** A complete plan; rarely used limits have defaults. */
const planSchema = z
  .strictObject({
    ...limitFields,
    unitsPerMonth: limitFields.unitsPerMonth.default(null),
    requestBytes: limitFields.requestBytes.default(REQUEST_BYTES_DEFAULT),
    batchItems: limitFields.batchItems.default(BATCH_ITEMS_DEFAULT),
    grpcKinds: limitFields.grpcKinds.default(null),
    grpcBlockedOwners: limitFields.grpcBlockedOwners.default([]),
    grpcResume: limitFields.grpcResume.default(false),
    methods: limitFields.methods.default({}),
  })
  .superRefine((limits, context) => {
    for (const { limit, message } of findPlanFaults(limits)) {
      context.addIssue({ code: 'custom', path: [limit], message: `${limit} ${message}` })
    }
  })

/** The operator's plans in addition to the built-in five; one with the same name replaces it. */
export const plansSchema = z
  .record(z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'a plan name has a-z, 0-9 and dashes'), planSchema)
  .default({})
  .transform((own): Plans => ({ ...BUILT_IN_PLANS, ...(own satisfies Record<string, Limits>) }))

/** A secret is given as a reference, never as its value. */
const secretReference = z.string().refine(isSecretRef, SECRET_REF_RULE)

const hasNoPassword = (url: string) => !URL.canParse(url) || new URL(url).password === ''
const PASSWORD_ELSEWHERE = {
  error: 'put the password into a file or the environment and name it as password',
  abort: true,
}

const store = z.discriminatedUnion('engine', [
  z.strictObject({
    engine: z.literal('sqlite').describe('One file; several processes of one machine may share it.'),
    file: z
      .string()
      .min(1)
      .default('access.db')
      .describe('File of the store: in the state folder, or an absolute path.'),
  }),
  z.strictObject({
    engine: z.literal('postgres').describe('For several machines.'),
    url: z
      .string()
      .regex(/^postgres(ql)?:\/\//, { error: 'give postgres://USER@HOST:PORT/DATABASE', abort: true })
      .refine(hasNoPassword, PASSWORD_ELSEWHERE)
      .superRefine(parsedBy(parsePostgresUrl))
      .describe(
        'Address of the database, without its password. Over a network its certificate is verified; ?sslrootcert=FILE names another CA, ?sslmode=require or ?sslmode=disable turn that off.',
      ),
    password: secretReference.optional().describe('Reference to the password of the database.'),
  }),
])

/** Monthly quota is computed from the rows of the month, and `sluice usage` shows thirty days. */
const USAGE_KEEP_DAYS_MIN = 62

const sharedQuota = z.strictObject({
  url: z
    .string()
    .regex(/^rediss?:\/\//, { error: 'give redis://HOST:PORT or rediss://HOST:PORT', abort: true })
    .refine(hasNoPassword, PASSWORD_ELSEWHERE)
    .superRefine(parsedBy(parseRedisUrl))
    .describe(
      'Address of Redis or Valkey, without its password: redis://USER@HOST:PORT/NUMBER, where the user of its access control list and the number of the database may be left out.',
    ),
  password: secretReference.optional().describe('Reference to the password of the server.'),
  keyPrefix: z
    .string()
    .min(1)
    .max(64)
    .default('sluice')
    .describe('Prefix of each key, so that two installations can share one server.'),
  processesAssumed: integer(1, 1000)
    .default(1)
    .describe(
      'Processes that share quota and connection limits, used until the server has been reached for the first time.',
    ),
})

export const accessOptions = z.strictObject({
  store: store
    .default({ engine: 'sqlite', file: 'access.db' })
    .describe(
      'Database of customers, subscriptions and token hashes. The address of PostgreSQL may end with ?sslmode=require, ?sslmode=disable or ?sslrootcert=FILE; by default its certificate is verified, except on this machine.',
    ),
  quota: section('Where quota is counted: in memory unless shared.', {
    shared: sharedQuota
      .optional()
      .describe(
        'One quota, and one count of open connections and streams, for several processes or machines that serve the same tokens.',
      ),
  }),
  usage: section('Usage: one row per hour, subscription and interface.', {
    keepDays: integer(USAGE_KEEP_DAYS_MIN, 36_500)
      .default(400)
      .describe('Days that usage is kept; older hours are deleted. The audit log is never shortened.'),
  }),
  plans: plansSchema,
})

export type AccessOptions = z.output<typeof accessOptions>
export type AccessOptionsInput = z.input<typeof accessOptions>
export type SharedQuotaOptions = z.output<typeof sharedQuota>

export function parseAccessOptions(input: AccessOptionsInput = {}): AccessOptions {
  return accessOptions.parse(input)
}
