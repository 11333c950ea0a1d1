import { buildRouteMap } from '@stricli/core'
import {
  argument,
  type ChangeFlags,
  type CommonFlags,
  type CutFlags,
  changeFlags,
  command,
  commonFlags,
  cutFlags,
  type FirstFlags,
  firstFlags,
  flag,
  type ListFlags,
  listFlags,
  positional,
} from '../../define.ts'

const load = () => import('./run/customer.ts')

export const customerRoutes = buildRouteMap({
  docs: { brief: 'Customers' },
  routes: {
    add: command<FirstFlags & { contact?: string }, [string]>({
      brief: 'Add a customer',
      details: 'The store must exist: add --create-store, or run sluice serve or sluice init first.',
      examples: ['acme --contact "@acme on the chat"'],
      parameters: {
        flags: { contact: flag.text('Contact details, free text', 'TEXT'), ...firstFlags },
        positional: positional(argument('NAME', 'Short name, unique')),
      },
      load: async () => (await load()).addCustomerCommand,
    }),
    list: command<ListFlags & { all?: boolean }>({
      brief: 'List customers',
      examples: ['', '--all -o csv'],
      parameters: { flags: { all: flag.switch('With removed customers'), ...listFlags }, aliases: { o: 'output' } },
      load: async () => (await load()).listCustomers,
    }),
    show: command<CommonFlags, [string]>({
      brief: 'Show a customer with subscriptions and notes',
      examples: ['acme'],
      parameters: { flags: commonFlags, positional: positional(argument('CUSTOMER', 'Name or id')) },
      load: async () => (await load()).showCustomer,
    }),
    rename: command<ChangeFlags, [string, string]>({
      brief: 'Give a customer another name',
      details: 'Its id, tokens, usage and audit log stay as they are.',
      examples: ['acme acme-corp'],
      parameters: {
        flags: changeFlags,
        positional: positional(argument('CUSTOMER', 'Name or id'), argument('NAME', 'New short name, unique')),
      },
      load: async () => (await load()).renameCustomerCommand,
    }),
    contact: command<ChangeFlags, [string, string]>({
      brief: 'Replace the contact details of a customer',
      details: 'Free text of at most 200 characters, shown in the list of customers; "" removes it.',
      examples: ['acme "Ana, ana@acme.example, +34 600 000 000"', 'acme ""'],
      parameters: {
        flags: changeFlags,
        positional: positional(argument('CUSTOMER', 'Name or id'), argument('TEXT', 'Contact details')),
      },
      load: async () => (await load()).contactCommand,
    }),
    remove: command<CutFlags & { force?: boolean }, [string]>({
      brief: 'Remove a customer; usage and audit log are kept',
      details: [
        'A customer with live subscriptions is removed only with --force, which cancels them permanently.',
        'Resuming it brings it back; its cancelled subscriptions stay cancelled.',
      ].join('\n'),
      examples: ['acme --force --yes', 'acme --force --dry-run'],
      parameters: {
        flags: { force: flag.switch('Cancel its live subscriptions'), ...cutFlags },
        positional: positional(argument('CUSTOMER', 'Name or id')),
      },
      load: async () => (await load()).removeCustomerCommand,
    }),
    suspend: command<CutFlags, [string]>({
      brief: 'Refuse all calls of the customer until resumed',
      examples: ['acme --yes'],
      parameters: { flags: cutFlags, positional: positional(argument('CUSTOMER', 'Name or id')) },
      load: async () => (await load()).suspendCustomer,
    }),
    resume: command<ChangeFlags, [string]>({
      brief: 'Resume a suspended or removed customer',
      examples: ['acme'],
      parameters: { flags: changeFlags, positional: positional(argument('CUSTOMER', 'Name or id')) },
      load: async () => (await load()).resumeCustomer,
    }),
    note: command<ChangeFlags, [string, string]>({
      brief: 'Add a note to a customer or subscription',
      examples: ['acme "paid by invoice 12"'],
      parameters: {
        flags: changeFlags,
        positional: positional(argument('SUBJECT', 'Customer or subscription'), argument('TEXT', 'The note')),
      },
      load: async () => (await load()).noteCommand,
    }),
  },
})
