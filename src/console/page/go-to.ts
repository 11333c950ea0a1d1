import { printRoute, type Route, type ViewName } from '../model/route.ts'

export function goTo(route: Partial<Route> & { readonly view: ViewName }): void {
  location.hash = printRoute(route)
}
