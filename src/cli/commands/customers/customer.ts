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
  flag,
  type ListFlags,
  listFlags,
  positional,
} from '../../define.ts'

const load = () => import('./run/customer.ts')

export const customerRoutes = buildRouteMap({
  docs: { brief: 'Customers' },
  routes: {
    add: command<ChangeFlags & { contact?: string }, [string]>({
      brief: 'Add a customer',
      examples: ['acme --contact "@acme on the chat"'],
      parameters: {
        flags: { contact: flag.text('Contact details, free text', 'TEXT'), ...changeFlags },
        positional: positional(argument('NAME', 'Short name, unique')),
      },
      load: async () => (await load()).addCustomerCommand,
    }),
    list: command<ListFlags>({
      brief: 'List customers',
      examples: ['', '-o csv'],
      parameters: { flags: listFlags, aliases: { o: 'output' } },
      load: async () => (await load()).listCustomers,
    }),
    show: command<CommonFlags, [string]>({
      brief: 'Show a customer with subscriptions and notes',
      examples: ['acme'],
      parameters: { flags: commonFlags, positional: positional(argument('CUSTOMER', 'Name or id')) },
      load: async () => (await load()).showCustomer,
    }),
    suspend: command<CutFlags, [string]>({
      brief: 'Refuse all calls of the customer until resumed',
      examples: ['acme --yes'],
      parameters: { flags: cutFlags, positional: positional(argument('CUSTOMER', 'Name or id')) },
      load: async () => (await load()).suspendCustomer,
    }),
    resume: command<ChangeFlags, [string]>({
      brief: 'Resume a suspended customer',
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
