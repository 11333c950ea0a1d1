import type { CustomerRecord } from '../../client/wire.ts'
import { goTo } from '../go-to.ts'
import type { Store } from '../store.ts'
import type { DialogSpec } from '../ui/dialog-spec.ts'

/** A record as it was shown: the change is refused if somebody has changed it since. */
type Shown<Record_> = Record_ & { readonly revision?: number | undefined }
type ShownCustomer = Shown<Pick<CustomerRecord, 'name'> & { readonly contact?: string }>

export function addCustomer({ client, report }: Store): DialogSpec {
  return {
    title: 'Add customer',
    fields: [
      { name: 'name', label: 'Name', isRequired: true, hint: 'Letters, digits and dashes, such as acme.' },
      { name: 'contact', label: 'Contact', hint: 'How you reach the customer. Customers never see it.' },
    ],
    submit: 'Add customer',
    perform: ({ name = '', contact = '' }, key) =>
      client.call('customerAdd', { body: { name: name.trim(), contact: contact.trim() }, key }),
    done: (value) => {
      const { name } = value as CustomerRecord
      report(`Customer ${name} added`)
      goTo({ view: 'customers', id: name })
    },
  }
}

export function renameCustomer({ client, report }: Store, { name: before, revision }: ShownCustomer): DialogSpec {
  return {
    title: `Rename ${before}`,
    fields: [{ name: 'name', label: 'New name', isRequired: true, value: before }],
    submit: 'Rename',
    perform: ({ name = '' }, key) =>
      client.call('customerChange', {
        params: { customer: before },
        body: { name: name.trim() },
        ifRevision: revision,
        key,
      }),
    done: (value) => {
      const { name } = value as CustomerRecord
      report(`Customer ${before} is now called ${name}`)
      goTo({ view: 'customers', id: name })
    },
  }
}

export function changeContact({ client, report }: Store, { name, contact = '', revision }: ShownCustomer): DialogSpec {
  return {
    title: `Contact of ${name}`,
    fields: [{ name: 'contact', label: 'Contact', value: contact }],
    submit: 'Save',
    perform: (values, key) =>
      client.call('customerChange', {
        params: { customer: name },
        body: { contact: (values['contact'] ?? '').trim() },
        ifRevision: revision,
        key,
      }),
    done: () => report(`Contact of ${name} saved`),
  }
}

export function suspendCustomer({ client, report }: Store, { name, revision }: ShownCustomer): DialogSpec {
  return {
    title: `Suspend ${name}?`,
    text: `Every call of ${name} is refused and its open streams are closed within 5 s, until it is resumed.`,
    submit: `Suspend ${name}`,
    isDestructive: true,
    perform: (_values, key) =>
      client.call('customerSuspend', { params: { customer: name }, ifRevision: revision, key }),
    done: () => report(`Customer ${name} suspended`),
  }
}

export function resumeCustomer({ client, report }: Store, { name, revision }: ShownCustomer): DialogSpec {
  return {
    title: `Resume ${name}`,
    text: 'Its active subscriptions work again. Cancelled ones stay cancelled.',
    submit: `Resume ${name}`,
    perform: (_values, key) => client.call('customerResume', { params: { customer: name }, ifRevision: revision, key }),
    done: () => report(`Customer ${name} resumed`),
  }
}

export function removeCustomer({ client, report }: Store, { name, revision }: ShownCustomer): DialogSpec {
  return {
    title: `Remove ${name}?`,
    text: `This removes customer ${name}. Usage and the audit log are kept.`,
    fields: [
      {
        name: 'force',
        kind: 'check',
        label: 'Cancel its subscriptions permanently',
        hint: 'Without this, a customer with subscriptions is not removed.',
      },
    ],
    submit: `Remove ${name}`,
    isDestructive: true,
    perform: ({ force }, key) =>
      client.call('customerRemove', {
        params: { customer: name },
        query: force === 'yes' ? { force: 'true' } : {},
        ifRevision: revision,
        key,
      }),
    done: () => report(`Customer ${name} removed`),
  }
}
