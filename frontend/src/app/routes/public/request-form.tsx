export { RequestFormPage as Component } from "@/features/request-form/components/first-question";
