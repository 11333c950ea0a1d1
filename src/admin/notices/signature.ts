import { createHmac } from 'node:crypto'

export type WebhookMessage = { readonly id: string; readonly timestampSeconds: number; readonly body: string }

const PREFIX = 'whsec_'

/** The headers of a message as Standard Webhooks describes them: one signature for each secret, so that a receiver may change its secret. */
export function webhookHeaders(message: WebhookMessage, secrets: readonly string[]): Record<string, string> {
  const signed = `${message.id}.${message.timestampSeconds}.${message.body}`
  const signatures = secrets.map(
    (secret) => `v1,${createHmac('sha256', keyOf(secret)).update(signed).digest('base64')}`,
  )
  return {
    'webhook-id': message.id,
    'webhook-timestamp': String(message.timestampSeconds),
    'webhook-signature': signatures.join(' '),
  }
}

/** A secret with the prefix is base64; another one is used as its bytes. */
function keyOf(secret: string): Buffer {
  return secret.startsWith(PREFIX) ? Buffer.from(secret.slice(PREFIX.length), 'base64') : Buffer.from(secret)
}
