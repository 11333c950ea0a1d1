import { PAGE_LIMIT } from '../../contract/admin-routes.ts'
import { ServiceError } from '../../core/error.ts'
import type { AdminHandlers } from '../api/handler.ts'
import { NO_RECEIVER, type Notices, noticeRecordWire } from './service.ts'

/** The routes of notices, which are undefined where no receiver is configured. */
export function noticeHandlers(
  opened: Pick<Notices, 'list' | 'test'> | undefined,
): Pick<AdminHandlers, 'notices' | 'noticeTest'> {
  return {
    async notices({ query }) {
      const limit = Math.min(Number(query.get('limit') ?? PAGE_LIMIT.default), PAGE_LIMIT.max)
      if (!Number.isInteger(limit) || limit < 1)
        throw new ServiceError('invalid-value', `limit is a whole number from 1 to ${PAGE_LIMIT.max}`)
      const all = opened?.list() ?? []
      const cursor = query.get('cursor')
      // A notice that was dropped meanwhile was the oldest: nothing follows it.
      const last = cursor === null ? -1 : all.findIndex(({ id }) => id === cursor)
      const start = cursor !== null && last === -1 ? all.length : last + 1
      const items = all.slice(start, start + limit)
      const hasMore = start + limit < all.length
      const body = {
        enabled: opened !== undefined,
        items: items.map(noticeRecordWire),
        next_cursor: hasMore ? (items.at(-1)?.id ?? null) : null,
      }
      return { body }
    },
    async noticeTest({ isDryRun }) {
      if (opened === undefined) throw new ServiceError('wrong-state', NO_RECEIVER.message, { fix: NO_RECEIVER.fix })
      if (isDryRun) return { body: { kind: 'test', done: false } }
      return { status: 201, body: noticeRecordWire(await opened.test()) }
    },
  }
}
