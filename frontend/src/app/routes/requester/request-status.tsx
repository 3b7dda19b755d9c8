export { OwnStatusScreen as Component } from "@/features/request-status/components/own-status-screen";
