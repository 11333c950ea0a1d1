import { z } from 'zod'
import type { Limits } from '../contract/limits.ts'
import { BATCH_ITEMS_DEFAULT, BUILT_IN_PLANS, findPlanFaults, type Plans, REQUEST_BYTES_DEFAULT } from './plan.ts'

const MIB = 1024 * 1024

/** TOML has no null, so a limit is lifted by a word. */
const unlimited = z.union([z.literal('unlimited'), z.null()]).transform(() => null)
const rate = z.number().min(0).max(100_000_000)
const orUnlimited = <T extends z.ZodType>(number: T) => z.union([number, unlimited])
const count = z.int().min(0).max(100_000_000)

const methodLimit = z.strictObject({
  cost: z.int().min(0).max(1_000_000).optional(),
  perSecond: rate.optional(),
})

const limitFields = {
  unitsPerSecond: orUnlimited(rate.gt(0)),
  sendsPerSecond: orUnlimited(rate),
  unitsPerMonth: orUnlimited(z.int().min(0)),
  wsConnections: orUnlimited(count),
  wsSubscriptions: orUnlimited(count),
  grpcStreams: orUnlimited(count),
  grpcAccountsPerStream: orUnlimited(count),
  requestBytes: z
    .int()
    .min(1024)
    .max(16 * MIB),
  batchItems: z.int().min(1).max(10_000),
  methods: z
    .record(z.string().min(1).max(64), methodLimit)
    .refine((methods) => Object.keys(methods).length <= 256, 'at most 256 methods can have limits of their own'),
}

/** Limits of one subscription that differ from its plan's. */
export const overridesSchema = z.strictObject(limitFields).partial()

/** A whole plan. The four that most operators never touch have defaults. */
export const planSchema = z
  .strictObject({
    ...limitFields,
    unitsPerMonth: limitFields.unitsPerMonth.default(null),
    requestBytes: limitFields.requestBytes.default(REQUEST_BYTES_DEFAULT),
    batchItems: limitFields.batchItems.default(BATCH_ITEMS_DEFAULT),
    methods: limitFields.methods.default({}),
  })
  .superRefine((limits, context) => {
    for (const { limit, says } of findPlanFaults(limits)) {
      context.addIssue({ code: 'custom', path: [limit], message: `${limit} ${says}` })
    }
  })

/** The operator's own plans, beside the built-in five; one of the same name takes its place. */
export const plansSchema = z
  .record(z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'a plan name has a-z, 0-9 and dashes'), planSchema)
  .default({})
  .transform((own): Plans => ({ ...BUILT_IN_PLANS, ...(own satisfies Record<string, Limits>) }))

/** A secret is named, never written here. */
const secretReference = z.string().regex(/^(file|env):.+$/, 'give file:PATH or env:NAME')

const hasNoPassword = (url: string) => !URL.canParse(url) || new URL(url).password === ''

const store = z.discriminatedUnion('engine', [
  z.strictObject({
    engine: z.literal('sqlite'),
    /** Relative to the state folder. */
    file: z.string().min(1).default('access.db'),
  }),
  z.strictObject({
    engine: z.literal('postgres'),
    url: z
      .string()
      .regex(/^postgres(ql)?:\/\//, 'give postgres://USER@HOST:PORT/DATABASE')
      .refine(hasNoPassword, 'put the password into a file or the environment and name it as password'),
    password: secretReference.optional(),
  }),
])

const sharedQuota = z.strictObject({
  url: z
    .string()
    .regex(/^rediss?:\/\//, 'give redis://HOST:PORT or rediss://HOST:PORT')
    .refine(hasNoPassword, 'put the password into a file or the environment and name it as password'),
  password: secretReference.optional(),
  /** Before each key, so that two installations can share one server. */
  keyPrefix: z.string().min(1).max(64).default('sluice'),
  /** How many processes share the budget when the server has never been reached and so cannot tell. */
  processesAssumed: z.int().min(1).max(1000).default(1),
})

export const accessOptions = z.strictObject({
  store: store.default({ engine: 'sqlite', file: 'access.db' }),
  quota: z
    .strictObject({
      /** Where several processes or machines serve the same tokens: one budget for all of them, kept in Redis or Valkey. */
      shared: sharedQuota.optional(),
    })
    .prefault({}),
  plans: plansSchema,
})

export type AccessOptions = z.output<typeof accessOptions>
export type AccessOptionsInput = z.input<typeof accessOptions>
export type SharedQuotaOptions = z.output<typeof sharedQuota>

export function parseAccessOptions(input: AccessOptionsInput = {}): AccessOptions {
  return accessOptions.parse(input)
}
