import { ServiceError } from '../../core/error.ts'
import { redactText } from '../../core/redact.ts'
import type { Customer } from '../store/model.ts'
import { lookUp, makeId, type Provisioning, parseName, runChange } from './context.ts'

export async function addCustomer(on: Provisioning, input: { name: string; contact: string }): Promise<Customer> {
  const name = parseName(input.name, 'customer')
  const contact = redactText(input.contact.trim())
  if (contact.length > 200) throw new ServiceError('invalid-value', 'a contact is at most 200 characters')
  return runChange(on, async (tx) => {
    if ((await tx.find('customers', { name })).length > 0) {
      throw new ServiceError('already-exists', `a customer "${name}" already exists`)
    }
    const customer: Customer = {
      id: makeId('cus', on.random),
      revision: 0,
      name,
      contact,
      state: 'active',
      createdAt: on.nowMs,
    }
    await tx.put('customers', customer)
    return { audit: { action: 'customer.add', subjects: [customer.id], after: { name, contact } }, result: customer }
  })
}

/** All subscriptions of a suspended customer are refused until it is resumed; their own state does not change. */
export async function setCustomerState(
  on: Provisioning,
  input: { customer: string; state: Customer['state'] },
): Promise<Customer> {
  return runChange(on, async (tx) => {
    const customer = await lookUp(tx, 'customers', input.customer)
    if (customer.state === input.state) {
      throw new ServiceError('wrong-state', `customer "${customer.name}" is ${input.state} already`, {
        fix:
          input.state === 'active'
            ? 'Nothing needs to be done.'
            : `Serve it again with: sluice customer resume ${customer.name}`,
      })
    }
    const changed: Customer = { ...customer, state: input.state }
    await tx.put('customers', changed)
    return {
      audit: {
        action: input.state === 'suspended' ? 'customer.suspend' : 'customer.resume',
        subjects: [customer.id],
        before: { state: customer.state },
        after: { state: input.state },
      },
      result: changed,
    }
  })
}
