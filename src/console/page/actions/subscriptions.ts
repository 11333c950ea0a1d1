import { PRODUCT_KEYS, PRODUCTS } from '../../../contract/products.ts'
import type { SecretRecord, SubscriptionRecord } from '../../client/wire.ts'
import { limitRows, parseLimit, parseMethods, showMethods } from '../../model/limits.ts'
import { goTo } from '../go-to.ts'
import type { Store } from '../store.ts'
import type { DialogSpec } from '../ui/dialog-spec.ts'

export type ShownSubscription = Pick<SubscriptionRecord, 'name' | 'plan' | 'products'> & {
  readonly revision?: number | undefined
  readonly limits?: Readonly<Record<string, unknown>>
  readonly overrides?: Readonly<Record<string, unknown>>
}

/** The products that a subscription can have. */
const SOLD = PRODUCT_KEYS.filter((key) => PRODUCTS[key].provisioned)
const PRODUCT_OPTIONS = SOLD.map((key) => ({ value: key as string, label: PRODUCTS[key].title as string }))
const LAST_DAY = { name: 'until', label: 'Last day', kind: 'date', hint: 'Empty: no end.' } as const

export function createSubscription({ client, report, secret }: Store, customer = ''): DialogSpec {
  return {
    title: customer === '' ? 'Create subscription' : `Create subscription for ${customer}`,
    text: 'Its token and the card for the customer are shown once, after this.',
    fields: [
      ...(customer === '' ? [{ name: 'customer', label: 'Customer', isRequired: true }] : []),
      { name: 'name', label: 'Name', isRequired: true, hint: 'Such as acme-prod. The customer sees it.' },
      { name: 'plan', label: 'Plan', kind: 'select', source: 'plans', value: 'starter' },
      {
        name: 'products',
        label: 'Products',
        kind: 'checks',
        source: 'products',
        options: PRODUCT_OPTIONS,
        value: 'bundle',
      },
      LAST_DAY,
    ],
    submit: 'Create subscription',
    check: ({ products }) => (products === '' ? 'Choose at least one product.' : undefined),
    perform: (values, key) => {
      const { name = '', plan = '', products = '', until = '' } = values
      const body = {
        name: name.trim(),
        customer: customer === '' ? (values['customer'] ?? '').trim() : customer,
        ...(plan.trim() === '' ? {} : { plan: plan.trim() }),
        products: products.split(','),
        ...(until === '' ? {} : { valid_until: until }),
      }
      return client.call('subCreate', { body, key })
    },
    done: (value, { name = '' }) => {
      secret.value = { title: `Subscription ${name.trim()} is created`, secret: value as SecretRecord }
      report(`Subscription ${name.trim()} created`)
      goTo({ view: 'subscriptions', id: name.trim() })
    },
  }
}

type Verb = {
  readonly id: 'subSuspend' | 'subResume' | 'subCancel'
  readonly title: string
  readonly text: string
  readonly submit: string
  readonly done: string
  readonly isDestructive: boolean
}

function change({ client, report }: Store, { name, revision }: ShownSubscription, verb: Verb): DialogSpec {
  return {
    title: verb.title,
    text: verb.text,
    submit: verb.submit,
    isDestructive: verb.isDestructive,
    perform: (_values, key) => client.call(verb.id, { params: { subscription: name }, ifRevision: revision, key }),
    done: () => report(verb.done),
  }
}

export function suspendSubscription(store: Store, shown: ShownSubscription): DialogSpec {
  const { name } = shown
  return change(store, shown, {
    id: 'subSuspend',
    title: `Suspend ${name}?`,
    text: `Every call of ${name} is refused and its open streams are closed within 5 s, until it is resumed.`,
    submit: `Suspend ${name}`,
    done: `Subscription ${name} suspended`,
    isDestructive: true,
  })
}

export function resumeSubscription(store: Store, shown: ShownSubscription): DialogSpec {
  const { name } = shown
  return change(store, shown, {
    id: 'subResume',
    title: `Resume ${name}`,
    text: 'Its token works again within a second.',
    submit: `Resume ${name}`,
    done: `Subscription ${name} is active again`,
    isDestructive: false,
  })
}

export function cancelSubscription(store: Store, shown: ShownSubscription): DialogSpec {
  const { name } = shown
  return change(store, shown, {
    id: 'subCancel',
    title: `Cancel ${name} permanently?`,
    text: `Token and database user of ${name} are revoked, and open streams are closed within 5 s. This cannot be undone.`,
    submit: `Cancel ${name}`,
    done: `Subscription ${name} cancelled`,
    isDestructive: true,
  })
}

export function renewSubscription({ client, report }: Store, { name, revision }: ShownSubscription): DialogSpec {
  return {
    title: `Renew ${name}`,
    fields: [LAST_DAY],
    submit: 'Renew',
    perform: ({ until = '' }, key) =>
      client.call('subRenew', {
        params: { subscription: name },
        body: { until: until === '' ? 'never' : until },
        ifRevision: revision,
        key,
      }),
    done: (_value, { until }) => report(until ? `${name} is valid until ${until}` : `${name} has no end now`),
  }
}

const METHODS_HINT = 'Such as getProgramAccounts:cost=20:per-second=0.5, separated by commas.'

export function changeLimits({ client, report }: Store, shown: ShownSubscription): DialogSpec {
  const { name, plan, revision, limits = {}, overrides = {} } = shown
  const rows = limitRows(limits, overrides)
  const before = Object.fromEntries(
    rows.map((row) => [row.name, row.source === 'plan' ? '' : row.value === null ? 'unlimited' : String(row.value)]),
  )
  const methods = showMethods(overrides)
  /** What is not changed is not checked: the API accepts more than a person can type. */
  const changedRows = (values: Readonly<Record<string, string>>) =>
    rows.filter((row) => (values[row.name] ?? '').trim() !== before[row.name])
  const changedMethods = ({ methods: typed = '' }: Readonly<Record<string, string>>) =>
    typed.trim() === methods ? [] : [['methods', parseMethods(typed, overrides)] as const]
  return {
    title: `Plan and limits of ${name}`,
    text: 'An empty limit is that of the plan. A change is in effect within a second.',
    fields: [
      { name: 'plan', label: 'Plan', kind: 'select' as const, source: 'plans' as const, value: plan },
      ...rows.map((row) => ({
        name: row.name,
        label: `${row.label[0]?.toUpperCase()}${row.label.slice(1)}`,
        value: before[row.name] ?? '',
        placeholder: row.source === 'plan' ? (row.value === null ? 'unlimited' : String(row.value)) : 'of the plan',
      })),
      { name: 'methods', label: 'Limits of methods', value: methods, placeholder: 'of the plan', hint: METHODS_HINT },
    ],
    submit: 'Save limits',
    check: (values) => {
      const wrong = changedRows(values).flatMap(({ name: limit, label }) => {
        const parsed = parseLimit(limit, values[limit] ?? '')
        return parsed.ok ? [] : [`${label}: ${parsed.message}`]
      })
      return wrong[0] ?? (changedMethods(values).some(([, parsed]) => parsed === undefined) ? METHODS_HINT : undefined)
    },
    perform: (values, key) => {
      const numbers = changedRows(values).map((row) => {
        const parsed = parseLimit(row.name, values[row.name] ?? '')
        return [row.name, parsed.ok ? parsed.value : 'plan'] as const
      })
      const entries = [...numbers, ...changedMethods(values)]
      const chosen = (values['plan'] ?? plan).trim()
      const body = {
        ...(chosen === plan ? {} : { plan: chosen }),
        ...(entries.length === 0 ? {} : { limits: Object.fromEntries(entries) }),
      }
      return client.call('subLimit', { params: { subscription: name }, body, ifRevision: revision, key })
    },
    done: () => report(`Limits of ${name} saved`),
  }
}

export function addProduct({ client, report }: Store, { name, products, revision }: ShownSubscription): DialogSpec {
  const options = PRODUCT_OPTIONS.filter(({ value }) => !products.includes(value))
  return {
    title: `Add a product to ${name}`,
    text: 'The token stays the same.',
    fields: [
      {
        name: 'product',
        label: 'Product',
        kind: 'select',
        source: 'products',
        options,
        value: options[0]?.value ?? '',
      },
    ],
    submit: 'Add product',
    perform: ({ product = '' }, key) =>
      client.call('productAdd', { params: { subscription: name, product }, ifRevision: revision, key }),
    done: (_value, { product }) => report(`${name} now includes ${product}`),
  }
}

export function removeProduct(
  { client, report }: Store,
  { name, revision }: ShownSubscription,
  product: string,
): DialogSpec {
  return {
    title: `Remove ${product} from ${name}?`,
    text: `${name} can no longer use ${product}; what it has open there ends within 5 s.`,
    submit: `Remove ${product}`,
    isDestructive: true,
    perform: (_values, key) =>
      client.call('productRemove', { params: { subscription: name, product }, ifRevision: revision, key }),
    done: () => report(`${name} no longer includes ${product}`),
  }
}

/** By id: a customer and a subscription may have the same name. */
export function addNote(
  { client, report }: Store,
  { id, name }: { readonly id: string; readonly name: string },
): DialogSpec {
  return {
    title: `Note about ${name}`,
    fields: [{ name: 'text', label: 'Note', kind: 'long-text', isRequired: true, hint: 'Customers never see notes.' }],
    submit: 'Add note',
    perform: ({ text = '' }, key) => client.call('noteAdd', { body: { subject: id, text: text.trim() }, key }),
    done: () => report('Note added'),
  }
}

export function addRefund({ client, report }: Store, name: string): DialogSpec {
  return {
    title: `Record a refund of ${name}`,
    text: 'The payment itself is made in your own system.',
    fields: [
      { name: 'amount', label: 'Amount', isRequired: true, placeholder: '12.50' },
      { name: 'currency', label: 'Currency', isRequired: true, value: 'USD', charactersMax: 5 },
      { name: 'reason', label: 'Reason', isRequired: true },
    ],
    submit: 'Record refund',
    perform: ({ amount = '', currency = '', reason = '' }, key) =>
      client.call('refundAdd', {
        params: { subscription: name },
        body: { amount: amount.trim(), currency: currency.trim().toUpperCase(), reason: reason.trim() },
        key,
      }),
    done: () => report(`Refund of ${name} recorded`),
  }
}
