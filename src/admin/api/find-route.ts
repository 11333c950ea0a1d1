import { ADMIN_ROUTES, type AdminRoute, type AdminRouteId } from '../../contract/admin-routes.ts'
import { AdminError } from './errors.ts'

export type FoundRoute = {
  readonly id: AdminRouteId
  readonly route: AdminRoute
  readonly params: Readonly<Record<string, string>>
}

type Candidate = { readonly id: AdminRouteId; readonly route: AdminRoute; readonly segments: readonly string[] }

const CANDIDATES: readonly Candidate[] = (Object.entries(ADMIN_ROUTES) as [AdminRouteId, AdminRoute][])
  .map(([id, route]) => ({ id, route, segments: route.path.split('/') }))
  // A fixed segment wins over a parameter.
  .toSorted((a, b) => parameters(a.segments) - parameters(b.segments))

/** The route of a request; throws 404 or 405. The requested path is not repeated, since it may contain a secret. */
export function findRoute(method: string, path: string): FoundRoute {
  const given = path.split('/')
  const matching = CANDIDATES.filter(({ segments }) => isMatch(segments, given))
  const wanted = method === 'HEAD' ? 'GET' : method
  const found = matching.find(({ route }) => route.method === wanted)
  if (found !== undefined) return { id: found.id, route: found.route, params: paramsOf(found.segments, given) }
  if (matching.length === 0)
    throw new AdminError('not-found', 'this path does not exist', 'docs/openapi/admin.json lists the paths.')
  const methods = [...new Set(matching.map(({ route }) => route.method))]
  throw new AdminError('method-not-allowed', `this path takes ${methods.join(', ')}`, 'Use one of these methods.', {
    allow: methods.flatMap((each) => (each === 'GET' ? ['GET', 'HEAD'] : [each])).join(', '),
  })
}

function isMatch(segments: readonly string[], given: readonly string[]): boolean {
  if (segments.length !== given.length) return false
  return segments.every((segment, at) => (segment.startsWith('{') ? given[at] !== '' : given[at] === segment))
}

function paramsOf(segments: readonly string[], given: readonly string[]): Record<string, string> {
  const params: Record<string, string> = {}
  segments.forEach((segment, at) => {
    if (segment.startsWith('{')) params[segment.slice(1, -1)] = decode(given[at] as string)
  })
  return params
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new AdminError('invalid-value', 'a part of the path is not valid percent-encoding', 'Encode it as UTF-8.')
  }
}

function parameters(segments: readonly string[]): number {
  return segments.filter((segment) => segment.startsWith('{')).length
}
