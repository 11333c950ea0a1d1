import { ServiceError } from '../../core/error.ts'
import type { SqlReader } from '../../platform/db/sql.ts'
import type { TimeSlices } from '../../platform/process/time-slices.ts'
import { allOf, anyOf, type Condition, contentCondition, escapeLike, type Having, listForIn } from './condition.ts'
import type { Customer, Subscription } from './model.ts'
import type { TableRows } from './rows.ts'
import { createScan, DECODED_WORK, endOfSlice, ROW_COSTS, type Scan, type ScanRequest } from './scan.ts'
import { RECORD_TABLES } from './tables.ts'

const SEARCH_CHARACTERS_MAX = 100
/** Customers that are given to SQLite as a list. Of more, it looks at the customer of each subscription. */
const CUSTOMERS_MAX = 2048
/** Subscriptions of these customers that are given to it as a list of names: of more, it reads the row of each. */
const NAMES_MAX = 2048
/** An id is searched from so many characters on, its prefix included: fewer would match a large part of all. */
const ID_CHARACTERS_MIN = 6
const SUBSCRIPTION_ID = 'sub_'

type Deps = { readonly on: SqlReader; readonly rows: TableRows; readonly slices: TimeSlices }

/** A part of a text, searched in lower case. */
type SearchedText = {
  readonly text: string
  /** The condition that the content of a customer has the text, in a field that is searched or in another one. */
  readonly inContent: Condition
  isCustomer(customer: Customer): boolean
}

/**
 * Finds customers by a part of their text. No index serves a part in the middle of a text on both engines, so all rows are compared, and a match in the
 * content is checked again in the record.
 */
export function searchCustomers({ on, rows }: Deps, search: string, having?: Having<Customer>): Scan<Customer> {
  const { inContent, isCustomer } = parseSearch(search)
  const condition = allOf([inContent, contentCondition(RECORD_TABLES.customers, having)])
  const scan = createScan(on, rows, 'customers', { condition })
  return async (after, size) => {
    const step = await scan(after, size)
    return { ...step, records: step.records.filter(isCustomer) }
  }
}

/** Finds subscriptions by their name, their id or their customer; of one customer, where its id is given, by name and id only. */
export async function searchSubscriptions(
  deps: Deps,
  search: string,
  {
    customerId,
    having,
  }: { readonly customerId?: string | undefined; readonly having?: Having<Subscription> | undefined },
): Promise<Scan<Subscription>> {
  const { on, rows } = deps
  const { text, inContent, isCustomer } = parseSearch(search)
  const isId = text.length >= ID_CHARACTERS_MIN && text.startsWith(SUBSCRIPTION_ID)
  const byName = { sql: "name LIKE ? ESCAPE '!'", values: [`%${escapeLike(text)}%`] }
  const byId = isId ? { sql: "id LIKE ? ESCAPE '!'", values: [`${escapeLike(text)}%`] } : undefined
  const owners = customerId === undefined ? await listedCustomers(deps, inContent) : []
  const ofOwners = await namesOf(on, owners)
  const byOwner = ofOwners === undefined ? ownerCondition(on, owners, inContent) : inList('name', ofOwners)
  const found = contentCondition(RECORD_TABLES.subscriptions, having)
  const isByNameAlone = byId === undefined && ofOwners !== undefined && found === undefined
  const nameCost = byOwner === undefined ? ROW_COSTS.names : ROW_COSTS.listedNames
  const scan = createScan(on, rows, 'subscriptions', {
    where: customerId === undefined ? {} : { customerId },
    condition: allOf([anyOf([byName, byId, byOwner]), found]),
    cost: isByNameAlone ? nameCost : costOf(on, owners),
    isLargeAtOnce: owners === undefined,
  })

  /** A customer is known to have the text somewhere in its content. */
  async function checkOwners(records: readonly Subscription[]): Promise<readonly Subscription[]> {
    const isNamed = ({ name, id }: Subscription) => name.includes(text) || (isId && id.startsWith(text))
    const ids = new Set(records.filter((record) => !isNamed(record)).map((record) => record.customerId))
    if (ids.size === 0) return records
    const of = rows(RECORD_TABLES.customers)
    const list = listForIn([...ids])
    const customers = (await on.rows(of.select(`WHERE id IN ${list.sql}`), list.values)).map(of.decode)
    const matching = new Set(customers.filter(isCustomer).map(({ id }) => id))
    return records.filter((record) => isNamed(record) || matching.has(record.customerId))
  }
  return async (after, size) => {
    const step = await scan(after, size)
    const records = await checkOwners(step.records)
    return { ...step, records, work: step.work + (step.records.length - records.length) * DECODED_WORK }
  }
}

/** Restricts a list of subscriptions to those of customers with some fields. */
export async function ofCustomers(
  deps: Deps,
  having: Having<Customer>,
): Promise<Pick<ScanRequest<Subscription>, 'condition' | 'cost' | 'isLargeAtOnce'>> {
  const condition = contentCondition(RECORD_TABLES.customers, having)
  if (condition === undefined) return {}
  const owners = await listedCustomers(deps, condition)
  return {
    condition: ownerCondition(deps.on, owners, condition) ?? { sql: '1 = 0', values: [] },
    cost: costOf(deps.on, owners),
    isLargeAtOnce: owners === undefined,
  }
}

/**
 * Ids of the customers whose content matches. Undefined where there are more than CUSTOMERS_MAX, and of a remote database, which finds them as a part of
 * its statement.
 */
async function listedCustomers({ on, slices }: Deps, condition: Condition): Promise<string[] | undefined> {
  if (on.isRemote) return undefined
  const ids: string[] = []
  const { sliceRows } = ROW_COSTS.content
  let after = ''
  for (;;) {
    const from = { sql: 'name > ?', values: [after] }
    const end = await endOfSlice(on, 'customers', 'name', { conditions: [from], rows: sliceRows })
    const until = end === undefined ? undefined : { sql: 'name <= ?', values: [end] }
    const all = allOf([from, until, condition])
    const found = await on.rows(`SELECT id FROM customers WHERE ${all?.sql} LIMIT ?`, [
      ...(all?.values ?? []),
      CUSTOMERS_MAX + 1,
    ])
    for (const [id] of found) ids.push(String(id))
    if (ids.length > CUSTOMERS_MAX) return undefined
    if (end === undefined) return ids
    after = end
    if (slices.isSpent()) await slices.yield()
  }
}

/** Names of the subscriptions of customers, from the index of customers alone; undefined where there are more than NAMES_MAX. */
async function namesOf(on: SqlReader, owners: readonly string[] | undefined): Promise<string[] | undefined> {
  if (owners === undefined) return undefined
  const condition = inList('customer_id', owners)
  if (condition === undefined) return []
  const statement = `SELECT name FROM subscriptions WHERE ${condition.sql} LIMIT ?`
  const found = await on.rows(statement, [...condition.values, NAMES_MAX + 1])
  return found.length > NAMES_MAX ? undefined : found.map(([name]) => String(name))
}

/** `content` in the condition is that of the customer: the name of a column means the innermost table that has it. */
function ownerCondition(
  { isRemote }: SqlReader,
  owners: readonly string[] | undefined,
  ofCustomer: Condition,
): Condition | undefined {
  if (owners === undefined) {
    // PostgreSQL compares all customers once in a statement, so its slices are large. SQLite looks up the customer of each row.
    const sql = isRemote
      ? `customer_id IN (SELECT id FROM customers WHERE ${ofCustomer.sql})`
      : `(SELECT CASE WHEN ${ofCustomer.sql} THEN 1 ELSE 0 END FROM customers WHERE customers.id = subscriptions.customer_id) = 1`
    return { sql, values: ofCustomer.values }
  }
  return inList('customer_id', owners)
}

/** Undefined where nothing is in the list. */
function inList(column: string, values: readonly string[]): Condition | undefined {
  if (values.length === 0) return undefined
  const list = listForIn(values)
  return { sql: `${column} IN ${list.sql}`, values: list.values }
}

function costOf({ isRemote }: SqlReader, owners: readonly string[] | undefined): ScanRequest<Subscription>['cost'] {
  return owners === undefined && !isRemote ? ROW_COSTS.joined : ROW_COSTS.content
}

function parseSearch(given: string): SearchedText {
  const text = lowerAscii(given.trim())
  const isSearchable =
    text !== '' && text.length <= SEARCH_CHARACTERS_MAX && text.isWellFormed() && !text.includes('\0')
  if (!isSearchable) throw new ServiceError('invalid-value', `a search has 1 to ${SEARCH_CHARACTERS_MAX} characters`)
  const isId = text.length >= ID_CHARACTERS_MIN
  // In the content, a text is a JSON string. An engine may lower other letters than those of ASCII, so that the needle is compared in both forms.
  const forms = [...new Set([text, text.toLowerCase()])].map((each) => escapeLike(JSON.stringify(each).slice(1, -1)))
  // Name and contact are between the id and the revision, which have a comma after them, and the state, before which a text ends and another begins.
  const patterns = forms.flatMap((form) => [`[%,%,"%${form}%","%`, ...(isId ? [`["${form}%`] : [])])
  const inContent = anyOf(patterns.map((pattern) => ({ sql: "lower(content) LIKE ? ESCAPE '!'", values: [pattern] })))
  const isCustomer = ({ name, contact, id }: Customer) =>
    name.includes(text) || lowerAscii(contact).includes(text) || (isId && id.startsWith(text))
  return { text, inContent: inContent as Condition, isCustomer }
}

function lowerAscii(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
}
