import { ServiceError } from '../../core/error.ts'
import type { SqlReader, SqlValue } from '../../platform/db/sql.ts'
import type { TimeSlices } from '../../platform/process/time-slices.ts'
import type { Customer, Subscription } from './model.ts'
import type { TableRows } from './rows.ts'
import { RECORD_TABLES } from './tables.ts'

const SEARCH_CHARACTERS_MAX = 100

/** Names and records that one statement looks at: a few milliseconds. */
const NAMES_SLICE = 20_000
const RECORDS_SLICE = 4000
/** Matching customers whose subscriptions are looked up by an index. Of more, the subscriptions are so many that a scan soon fills a page. */
const CUSTOMERS_MAX = 500
const SCAN_RECORDS = 500
/** An id is searched from so many characters on, its prefix included: fewer would match a large part of all. */
const ID_CHARACTERS_MIN = 6
/** Not before the rest of any id, in the order of every collation. */
const ID_END = 'z'.repeat(16)

/** A step through a list: the records found, and whether none follow. `end` is where the next step begins. */
export type Step<T> = { readonly records: readonly T[]; readonly end: string; readonly isLast: boolean }

type Search = {
  customers(after: string, size: number): Promise<Step<Customer>>
  /** Prepared once for a page; of one customer only, where its id is given. */
  subscriptions(customerId: string | undefined): Promise<(after: string, size: number) => Promise<Step<Subscription>>>
}

/**
 * Finds records by a part of their text, in the order of their names. No index serves a part in the middle of a text on both engines, so ranges of an
 * index of names are compared, in slices; what is not in an index is compared in the content of the rows, where a match is checked again in the record.
 */
export function createSearch(on: SqlReader, rows: TableRows, given: string, slices: TimeSlices): Search {
  const text = parseSearch(given)
  const ofCustomers = rows(RECORD_TABLES.customers)
  const ofSubscriptions = rows(RECORD_TABLES.subscriptions)
  const namePattern = `%${escapeLike(text)}%`
  // In the content, a text is a JSON string. An engine may lower other letters than those of ASCII, so that the needle is compared in both forms.
  const contentPatterns = [...new Set([text, text.toLowerCase()])].map(
    (each) => `%${escapeLike(JSON.stringify(each).slice(1, -1))}%`,
  )
  const inContent = `(${contentPatterns.map(() => "lower(content) LIKE ? ESCAPE '!'").join(' OR ')})`
  const isIdSearch = text.length >= ID_CHARACTERS_MIN

  const isCustomer = ({ name, contact, id }: Customer) =>
    name.includes(text) || lowerAscii(contact).includes(text) || (isIdSearch && id.startsWith(text))
  const isNamed = ({ name, id }: Subscription) => name.includes(text) || (isIdSearch && id.startsWith(text))

  /** The last name of the next `size` names; undefined where fewer follow. */
  async function endOfSlice(table: string, after: string, size: number, only: string, values: string[]) {
    const sql = `SELECT name FROM ${table} WHERE ${only}name > ? ORDER BY name LIMIT 1 OFFSET ?`
    const [row] = await on.rows(sql, [...values, after, size - 1])
    return row === undefined ? undefined : String(row[0])
  }

  async function customers(after: string, size: number): Promise<Step<Customer>> {
    const end = await endOfSlice('customers', after, RECORDS_SLICE, '', [])
    const range = end === undefined ? 'name > ?' : 'name > ? AND name <= ?'
    const found = await on.rows(ofCustomers.select(`WHERE ${range} AND ${inContent} ORDER BY name LIMIT ?`), [
      after,
      ...(end === undefined ? [] : [end]),
      ...contentPatterns,
      size,
    ])
    const records = found.map(ofCustomers.decode)
    const isCut = records.length === size
    const last = records.at(-1)?.name ?? after
    return {
      records: records.filter(isCustomer),
      end: isCut ? last : (end ?? last),
      isLast: !isCut && end === undefined,
    }
  }

  /** Ids of the customers that match; undefined where there are more than CUSTOMERS_MAX. */
  async function matchingCustomers(): Promise<string[] | undefined> {
    const ids: string[] = []
    let after = ''
    for (;;) {
      const step = await customers(after, CUSTOMERS_MAX + 1)
      ids.push(...step.records.map(({ id }) => id))
      if (ids.length > CUSTOMERS_MAX) return undefined
      if (step.isLast) return ids
      after = step.end
      if (slices.isSpent()) await slices.yield()
    }
  }

  /** The first names after `after` that contain the text. */
  async function namesWithText(from: string, size: number, customerId: string | undefined): Promise<string[]> {
    const only = customerId === undefined ? '' : 'customer_id = ? AND '
    const values = customerId === undefined ? [] : [customerId]
    const names: string[] = []
    let after = from
    for (;;) {
      const end = await endOfSlice('subscriptions', after, NAMES_SLICE, only, values)
      const range = end === undefined ? 'name > ?' : 'name > ? AND name <= ?'
      const found = await on.rows(
        `SELECT name FROM subscriptions WHERE ${only}${range} AND name LIKE ? ESCAPE '!' ORDER BY name LIMIT ?`,
        [...values, after, ...(end === undefined ? [] : [end]), namePattern, size - names.length],
      )
      names.push(...found.map(([name]) => String(name)))
      if (end === undefined || names.length === size) return names
      after = end
      if (slices.isSpent()) await slices.yield()
    }
  }

  async function namesOf(sql: string, values: readonly (string | number)[]): Promise<string[]> {
    return (await on.rows(`SELECT name FROM subscriptions WHERE ${sql} ORDER BY name LIMIT ?`, values)).map(([name]) =>
      String(name),
    )
  }

  /** Looks at each record, because very many match by their customer. */
  async function scanSubscriptions(after: string): Promise<Step<Subscription>> {
    const found = await on.rows(ofSubscriptions.select('WHERE name > ? ORDER BY name LIMIT ?'), [after, SCAN_RECORDS])
    const read = found.map(ofSubscriptions.decode)
    const list = listForIn([...new Set(read.map(({ customerId }) => customerId))])
    const owners = await on.rows(ofCustomers.select(`WHERE id IN ${list.sql}`), list.values)
    const matching = new Set(
      owners
        .map(ofCustomers.decode)
        .filter(isCustomer)
        .map(({ id }) => id),
    )
    return {
      records: read.filter((record) => isNamed(record) || matching.has(record.customerId)),
      end: read.at(-1)?.name ?? after,
      isLast: read.length < SCAN_RECORDS,
    }
  }

  return {
    customers,
    async subscriptions(customerId) {
      const owners = customerId === undefined ? await matchingCustomers() : []
      if (owners === undefined) return scanSubscriptions
      const list = listForIn(owners)
      return async (after, size) => {
        const only = customerId === undefined ? '' : 'customer_id = ? AND '
        const ownerValues = customerId === undefined ? [] : [customerId]
        const sources = [
          await namesWithText(after, size, customerId),
          owners.length === 0
            ? []
            : await namesOf(`customer_id IN ${list.sql} AND name > ?`, [...(list.values as string[]), after, size]),
          isIdSearch
            ? await namesOf(`${only}id >= ? AND id <= ? AND id LIKE ? ESCAPE '!' AND name > ?`, [
                ...ownerValues,
                text,
                `${text}${ID_END}`,
                `${escapeLike(text)}%`,
                after,
                size,
              ])
            : [],
        ]
        if (slices.isSpent()) await slices.yield()
        const names = [...new Set(sources.flat())]
        if (names.length === 0) return { records: [], end: after, isLast: true }
        const among = listForIn(names)
        const found = await on.rows(ofSubscriptions.select(`WHERE name IN ${among.sql} ORDER BY name LIMIT ?`), [
          ...among.values,
          size,
        ])
        const records = found.map(ofSubscriptions.decode)
        const isLast = sources.every((each) => each.length < size) && names.length <= size
        return { records, end: records.at(-1)?.name ?? after, isLast }
      }
    },
  }
}

function parseSearch(given: string): string {
  const text = lowerAscii(given.trim())
  const isSearchable =
    text !== '' && text.length <= SEARCH_CHARACTERS_MAX && text.isWellFormed() && !text.includes('\0')
  if (isSearchable) return text
  throw new ServiceError('invalid-value', `a search has 1 to ${SEARCH_CHARACTERS_MAX} characters`)
}

function lowerAscii(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
}

function escapeLike(text: string): string {
  return text.replaceAll(/[!%_]/g, '!$&')
}

/** A list of values for `IN`. Its length is a power of two, so that few different statements are prepared; the last value is repeated. */
export function listForIn(values: readonly string[]): { readonly sql: string; readonly values: SqlValue[] } {
  const length = 2 ** Math.ceil(Math.log2(Math.max(1, values.length)))
  const padded = Array.from({ length }, (_, at) => values[Math.min(at, values.length - 1)] ?? '')
  return { sql: `(${padded.map(() => '?').join(', ')})`, values: padded }
}
