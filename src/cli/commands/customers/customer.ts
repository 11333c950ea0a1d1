import { buildRouteMap } from '@stricli/core'
import {
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
  word,
  words,
} from '../../define.ts'

const load = () => import('./run/customer.ts')

export const customerRoutes = buildRouteMap({
  docs: { brief: 'Customers: who holds subscriptions' },
  routes: {
    add: command<ChangeFlags & { contact?: string }, [string]>({
      brief: 'Add a customer',
      examples: ['acme --contact "@acme on the chat"'],
      parameters: {
        flags: { contact: flag.text('How you reach the customer, in your own words', 'TEXT'), ...changeFlags },
        positional: words(word('NAME', 'Short name, unique')),
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
      parameters: { flags: commonFlags, positional: words(word('CUSTOMER', 'Name or id')) },
      load: async () => (await load()).showCustomer,
    }),
    suspend: command<CutFlags, [string]>({
      brief: 'Refuse every call of the customer, until resumed',
      examples: ['acme --yes'],
      parameters: { flags: cutFlags, positional: words(word('CUSTOMER', 'Name or id')) },
      load: async () => (await load()).suspendCustomer,
    }),
    resume: command<ChangeFlags, [string]>({
      brief: 'Serve a suspended customer again',
      examples: ['acme'],
      parameters: { flags: changeFlags, positional: words(word('CUSTOMER', 'Name or id')) },
      load: async () => (await load()).resumeCustomer,
    }),
    note: command<ChangeFlags, [string, string]>({
      brief: 'Write down a note about a customer or subscription',
      examples: ['acme "paid by invoice 12"'],
      parameters: {
        flags: changeFlags,
        positional: words(word('SUBJECT', 'Customer or subscription'), word('TEXT', 'The note')),
      },
      load: async () => (await load()).noteCommand,
    }),
  },
})
