import { z } from 'zod'
import { integer, refuseSameNames, section } from '../../contract/option-fields.ts'
import { isSecretRef, SECRET_REF_RULE } from '../../platform/config/secret-ref.ts'
import { NOTICE_KINDS } from './notice.ts'

const HOOKS_MAX = 8
const DAYS_MAX = 365
/** What is delivered to whom is kept by the name of the receiver. */
const IS_COMMAND = 'command is the name of the program of notices.command: give another name'

const kinds = z
  .array(z.enum(NOTICE_KINDS))
  .min(1)
  .optional()
  .describe('Kinds of notices that are sent there; all where it is missing.')

/** The `notices` section of the configuration. */
export const noticesOptions = section(
  'Notices to your own systems: webhooks and a command. Nothing is watched where neither is configured.',
  {
    webhooks: z
      .array(
        z.strictObject({
          name: z
            .string()
            .regex(/^[a-z0-9-]{1,32}$/, 'give 1 to 32 of a-z, 0-9 and dash')
            .describe('Its name in lists, metrics and the log.'),
          url: z
            .url({ protocol: /^https?$/, error: 'give an http or https URL', abort: true })
            .refine(hasNoUser, 'remove the user and password: each notice is signed, and its receiver checks that')
            .describe('Receives each notice as a POST, signed as Standard Webhooks describes.'),
          secrets: z
            .array(z.string().refine(isSecretRef, SECRET_REF_RULE))
            .min(1)
            .max(2)
            .describe('References to the signing secret. With two, both sign each notice: replace a secret so.'),
          kinds,
        }),
      )
      .max(HOOKS_MAX)
      .superRefine((webhooks, context) => {
        refuseSameNames(context, [{ key: 'notices.webhooks', items: webhooks }])
        if (webhooks.some(({ name }) => name === 'command')) context.addIssue({ code: 'custom', message: IS_COMMAND })
      })
      .default([])
      .describe('Webhooks.'),
    command: z
      .array(z.string().min(1))
      .min(1)
      .max(32)
      .optional()
      .describe('A program and its arguments, run for each notice with the notice as JSON on its standard input.'),
    commandKinds: kinds,
    endsDays: z
      .array(integer(1, DAYS_MAX))
      .max(5)
      .default([14, 3])
      .describe('Days before the end of a subscription at which a notice is sent.'),
    usagePercents: z
      .array(integer(1, 100))
      .max(5)
      .default([80, 100])
      .describe("Shares of a month's units at which a notice is sent."),
    nodeDownSeconds: integer(10, 86_400)
      .default(60)
      .describe('A node that is not healthy for this long causes a notice.'),
    destinationSilentSeconds: integer(10, 86_400)
      .default(300)
      .describe(
        'A shred destination that refuses its packets, or that none could be sent to, for this long causes a notice.',
      ),
    certificateDays: integer(0, DAYS_MAX)
      .default(14)
      .describe('Days before the end of a certificate at which a notice is sent; 0 for none.'),
    backupDays: integer(0, DAYS_MAX)
      .default(7)
      .describe('A notice is sent when `sluice backup` has not run for this many days; 0 for none.'),
    giveUpHours: integer(1, 720)
      .default(72)
      .describe('How long a notice is offered to a receiver that does not accept it.'),
  },
)

function hasNoUser(text: string): boolean {
  const { username, password } = new URL(text)
  return username === '' && password === ''
}

export type NoticesOptions = z.output<typeof noticesOptions>
