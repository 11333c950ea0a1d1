import { buildRouteMap } from '@stricli/core'
import { argument, changeFlags, command, cutFlags, firstFlags, flag, listFlags } from '../../define.ts'

const load = () => import('./run/customer.ts')

export const customerRoutes = buildRouteMap({
  docs: { brief: 'Customers' },
  routes: {
    add: command({
      brief: 'Add a customer',
      details: 'The store must exist: add --create-store, or run sluice serve or sluice init first.',
      examples: ['acme --contact "@acme on the chat"'],
      flags: { contact: flag.text('Contact details, free text', 'TEXT'), ...firstFlags },
      args: [argument('NAME', 'Short name, unique')],
      load: async () => (await load()).addCustomerCommand,
    }),
    list: command({
      brief: 'List customers',
      examples: ['', '--all -o csv'],
      flags: { all: flag.switch('With removed customers'), ...listFlags },
      load: async () => (await load()).listCustomers,
    }),
    show: command({
      brief: 'Show a customer with subscriptions and notes',
      examples: ['acme'],
      args: [argument('CUSTOMER', 'Name or id')],
      load: async () => (await load()).showCustomer,
    }),
    rename: command({
      brief: 'Give a customer another name',
      details: 'Its id, tokens, usage and audit log stay as they are.',
      examples: ['acme acme-corp'],
      flags: changeFlags,
      args: [argument('CUSTOMER', 'Name or id'), argument('NAME', 'New short name, unique')],
      load: async () => (await load()).renameCustomerCommand,
    }),
    contact: command({
      brief: 'Replace the contact details of a customer',
      details: 'Free text of at most 200 characters, shown in the list of customers; "" removes it.',
      examples: ['acme "Ana, ana@acme.example, +34 600 000 000"', 'acme ""'],
      flags: changeFlags,
      args: [argument('CUSTOMER', 'Name or id'), argument('TEXT', 'Contact details')],
      load: async () => (await load()).contactCommand,
    }),
    'billing-id': command({
      brief: 'Set the id of a customer in the billing system',
      details:
        'Stripe needs it (cus_…); OpenMeter uses our id without it. "" removes it. Usage that waited for it is sent.',
      examples: ['acme cus_NffrFeUfNV2Hib'],
      flags: changeFlags,
      args: [argument('CUSTOMER', 'Name or id'), argument('ID', 'Id in the billing system')],
      load: async () => (await load()).billingIdCommand,
    }),
    remove: command({
      brief: 'Remove a customer; usage and audit log are kept',
      details: [
        'A customer with live subscriptions is removed only with --force, which cancels them permanently.',
        'Resuming it brings it back; its cancelled subscriptions stay cancelled.',
      ].join('\n'),
      examples: ['acme --force --yes', 'acme --force --dry-run'],
      flags: { force: flag.switch('Cancel its live subscriptions'), ...cutFlags },
      args: [argument('CUSTOMER', 'Name or id')],
      load: async () => (await load()).removeCustomerCommand,
    }),
    suspend: command({
      brief: 'Refuse all calls of the customer until resumed',
      examples: ['acme --yes'],
      flags: cutFlags,
      args: [argument('CUSTOMER', 'Name or id')],
      load: async () => (await load()).suspendCustomer,
    }),
    resume: command({
      brief: 'Resume a suspended or removed customer',
      examples: ['acme'],
      flags: changeFlags,
      args: [argument('CUSTOMER', 'Name or id')],
      load: async () => (await load()).resumeCustomer,
    }),
    note: command({
      brief: 'Add a note to a customer or subscription',
      examples: ['acme "paid by invoice 12"'],
      flags: changeFlags,
      args: [argument('SUBJECT', 'Customer or subscription'), argument('TEXT', 'The note')],
      load: async () => (await load()).noteCommand,
    }),
  },
})
