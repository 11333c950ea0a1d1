import { notInBuild } from './not-in-build.ts'

/** Commands whose services this build does not have yet. */
export const topCommand = notInBuild('top', 'Live view of products, customers and upstreams')
