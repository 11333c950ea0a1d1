import { ServiceError } from '../../core/error.ts'
import { redactText } from '../../core/redact.ts'
import type { Note, Refund, Subscription } from '../store/model.ts'
import type { AccessTransaction } from '../store/store.ts'
import { lookUp, lookUpToChange, makeId, type Provisioning, runChange } from './context.ts'

const NOTE_CHARACTERS_MAX = 2000

/** Adds the operator's note about a customer or a subscription. */
export async function addNote(on: Provisioning, input: { subject: string; text: string }): Promise<Note> {
  // A token pasted into a note would be stored, although a token is shown only once.
  const text = redactText(input.text.trim())
  if (text === '' || text.length > NOTE_CHARACTERS_MAX) {
    throw new ServiceError('invalid-value', `a note has 1 to ${NOTE_CHARACTERS_MAX} characters`)
  }
  return runChange(on, async (tx) => {
    const subjectId = await subjectOf(tx, input.subject)
    const note: Note = { id: makeId('note', on.random), revision: 0, subjectId, text, createdAt: on.nowMs }
    await tx.put('notes', note)
    return { audit: { action: 'note.add', subjects: [subjectId, note.id], after: { text } }, result: note }
  })
}

async function subjectOf(tx: AccessTransaction, subject: string): Promise<string> {
  const byId = (await tx.get('customers', subject)) ?? (await tx.get('subscriptions', subject))
  if (byId !== undefined) return byId.id
  const [customer] = await tx.find('customers', { name: subject })
  if (customer === undefined) return (await lookUp(tx, 'subscriptions', subject)).id
  const [subscription] = await tx.find('subscriptions', { name: subject })
  if (subscription === undefined) return customer.id
  throw new ServiceError('invalid-value', `"${subject}" is the name of a customer and of a subscription`, {
    fix: `Give the id: ${customer.id} for the customer, ${subscription.id} for the subscription.`,
  })
}

/** Records a refund that was paid outside Sluice. */
export async function recordRefund(
  on: Provisioning,
  input: { subscription: string; amount: string; currency: string; reason: string },
): Promise<{ refund: Refund; subscription: Subscription }> {
  if (!/^(0|[1-9][0-9]{0,14})(\.[0-9]{1,9})?$/.test(input.amount) || Number(input.amount) === 0) {
    throw new ServiceError(
      'invalid-value',
      `"${input.amount}" is not an amount: write a positive decimal such as 40 or 12.50`,
    )
  }
  if (!/^[A-Z]{3,5}$/.test(input.currency)) {
    throw new ServiceError(
      'invalid-value',
      `"${input.currency}" is not a currency: write 3 to 5 capital letters such as USD, EUR or SOL`,
    )
  }
  const reason = redactText(input.reason.trim())
  if (reason === '' || reason.length > NOTE_CHARACTERS_MAX) {
    throw new ServiceError('invalid-value', `a reason has 1 to ${NOTE_CHARACTERS_MAX} characters`)
  }
  return runChange(on, async (tx) => {
    const subscription = await lookUpToChange(on, tx, 'subscriptions', input.subscription)
    const { amount, currency } = input
    const refund: Refund = {
      id: makeId('ref', on.random),
      revision: 0,
      subscriptionId: subscription.id,
      amount,
      currency,
      reason,
      createdAt: on.nowMs,
    }
    await tx.put('refunds', refund)
    return {
      audit: { action: 'refund.record', subjects: [subscription.id, refund.id], after: { amount, currency, reason } },
      result: { refund, subscription },
    }
  })
}
