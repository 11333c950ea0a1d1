import { send, type WorkCase, type WorkTarget } from './work-case.ts'

/** The operator's own listener. */
export function operatorCases(): WorkCase[] {
  return ['/metrics', '/health', '/healthz', '/readyz', '/no-such-path'].map((path) => ({
    name: `operator GET ${path}`,
    run: ({ http }: WorkTarget) => send(`${http.operator}${path}`),
  }))
}
