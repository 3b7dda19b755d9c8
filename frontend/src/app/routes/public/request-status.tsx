export { LookupScreen as Component } from "@/features/request-status/components/lookup-screen";
